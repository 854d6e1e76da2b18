"""Count arithmetic instructions of kernel text: one assignment per line, operators and `Real(...)`."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Hashable
from functools import lru_cache
from typing import NamedTuple

_ASSIGNMENT = re.compile(r"\s+(const Real )?(\w+(?:\[\d+\])?) = (.+);")
_RECIPROCAL, _QUOTIENT = 1, 5
"""Instructions of a division with fast mathematics; a quotient is guarded against large divisors."""


def arithmetic(text: str, arguments: Collection[str]) -> int:
    """Return the instructions of all assignments, as a compiler leaves them.

    Expressions of numbers and launch arguments alone are hoisted out of loops, and common subexpressions of a function
    are computed once: both cost nothing. A product in a sum is fused with it; so is a named product, if all its uses
    are such sums.
    """
    beforehand = {"Real", *arguments}
    return sum(_Values(part, beforehand).instructions() for part in text.split("__device__"))


class _Values:
    """Value numbering of a function: expressions of equal values have equal numbers.

    beforehand: names of loop invariants, to which those of the function are added.
    """

    def __init__(self, text: str, beforehand: set[str]) -> None:
        self._beforehand = beforehand
        self._numbers: dict[Hashable, int] = {}
        self._assigned: dict[str, int] = {}
        self._unsigned: dict[int, int] = {}
        self._costs: dict[int, int] = {}
        self._sums: list[tuple[int, int]] = []
        self._products: set[int] = set()
        self._uses: Counter[int] = Counter()
        for constant, name, value in _ASSIGNMENT.findall(text):
            expression = ast.parse(value, mode="eval").body
            if _known(expression, beforehand) and name.isidentifier():
                beforehand.add(name)
                continue
            self._assigned[name] = found = self._value(expression)
            if not constant:  # it is an output
                self._use(found)

    def instructions(self) -> int:
        """Return all instructions but products that are fused with sums."""
        taken = Counter(map(self._taken, self._sums))
        return sum(self._costs.values()) - sum(taken[one] == self._uses[one] > 0 for one in self._products)

    def _taken(self, operands: tuple[int, int]) -> int | None:
        """Return the product that a sum is fused with: the one with the fewest uses."""
        return min(self._products.intersection(operands), key=lambda one: (self._uses[one], one), default=None)

    def _value(self, node: ast.expr) -> int:
        """Return the number of an expression; a new one is counted."""
        if isinstance(node, ast.UnaryOp):  # a sign is part of the instruction that uses the value
            operand = self._value(node.operand)
            signed = self._number((type(node.op), operand))
            self._unsigned[signed] = self._unsigned.get(operand, operand)
            return signed
        if not isinstance(node, ast.BinOp) or _known(node, self._beforehand):
            name = ast.unparse(node)
            return self._assigned[name] if name in self._assigned else self._number(name)
        return self._worked_out(node, (self._value(node.left), self._value(node.right)))

    def _worked_out(self, node: ast.BinOp, operands: tuple[int, int]) -> int:
        either_way = isinstance(node.op, (ast.Add, ast.Mult))
        found = self._number((type(node.op), tuple(sorted(operands)) if either_way else operands))
        if found in self._costs:
            return found
        self._costs[found] = (_RECIPROCAL if _one(node.left) else _QUOTIENT) if _is(node, ast.Div) else 1
        for one in operands:
            self._use(one)
        if _is(node, ast.Mult):
            self._products.add(found)
        elif _is(node, ast.Add, ast.Sub):
            first, second = (self._unsigned.get(one, one) for one in operands)
            self._sums.append((first, second))
        return found

    def _use(self, value: int) -> None:
        self._uses[self._unsigned.get(value, value)] += 1

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


class Operations(NamedTuple):
    """Operations of a cell: quotients, and others, fused with the sum that uses a product.

    products: others with a product.
    """

    plain: int
    quotients: int
    products: int


@lru_cache(maxsize=64)
def operations(text: str) -> Operations:
    """Count the operations of lines `name = expression`, each by itself: a product with a name is counted."""
    values = [ast.parse(line.partition(" = ")[2], mode="eval").body for line in text.splitlines()]
    nodes = [node for value in values for node in ast.walk(value)]
    products = sum(_is(node, ast.Mult) and not _known(node, ()) for node in nodes)
    return Operations(sum(map(_plain, values)), sum(_is(node, ast.Div) for node in nodes), products)


def _known(node: ast.AST, beforehand: Collection[str]) -> bool:
    return all(one.id in beforehand for one in ast.walk(node) if isinstance(one, ast.Name))


def _plain(node: ast.expr) -> int:
    """Return the instructions of an expression without quotients."""
    if isinstance(node, ast.UnaryOp):
        return _plain(node.operand)
    if not isinstance(node, ast.BinOp) or _known(node, ()):
        return 0
    operands = [node.left, node.right]
    fused = _is(node, ast.Add, ast.Sub) and any(_is(one, ast.Mult) and not _known(one, ()) for one in operands)
    return sum(map(_plain, operands)) + (0 if fused or _is(node, ast.Div) else 1)


def _is(node: ast.AST, *operators: type[ast.operator]) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, operators)


def _one(node: ast.expr) -> bool:
    literal = node.args[0] if isinstance(node, ast.Call) else node
    return isinstance(literal, ast.Constant) and literal.value == 1
