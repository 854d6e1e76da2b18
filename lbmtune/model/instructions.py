"""Arithmetic instructions of C text as the kernels have it: one assignment a line, operators and `Real(...)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

_ASSIGNMENT = re.compile(r"\s+(?:const Real )?(\w+)((?:\[\d+\])?) = (.+);")
_RECIPROCAL, _QUOTIENT = 1, 5
"""Instructions of a division with fast mathematics: a quotient is guarded against large divisors."""


def arithmetic(text: str, arguments: Collection[str]) -> int:
    """Instructions of all assignments; a product that is added to something is one instruction with it.

    What follows from numbers and launch arguments alone is worked out before any loop, and costs nothing.
    """
    beforehand, count = {"Real", *arguments}, 0
    for name, index, value in _ASSIGNMENT.findall(text):
        expression = ast.parse(value, mode="eval").body
        if _known(expression, beforehand) and not index:
            beforehand.add(name)
        else:
            count += _instructions(expression, beforehand)
    return count


def by_kind(text: str) -> tuple[int, int]:
    """The same of the lines `name = expression` of a CPU kernel: all but quotients, and those."""
    values = [ast.parse(line.partition(" = ")[2], mode="eval").body for line in text.splitlines()]
    quotients = [node for value in values for node in ast.walk(value) if _quotient(node)]
    return sum(_instructions(value, (), quotient=0) for value in values), len(quotients)


def _known(node: ast.expr, beforehand: Collection[str]) -> bool:
    return all(one.id in beforehand for one in ast.walk(node) if isinstance(one, ast.Name))


def _instructions(node: ast.expr, beforehand: Collection[str], quotient: int | None = None) -> int:
    """quotient: what each counts; None: as above."""
    if isinstance(node, ast.UnaryOp):  # a sign is part of the instruction that takes the value
        return _instructions(node.operand, beforehand, quotient)
    if not isinstance(node, ast.BinOp) or _known(node, beforehand):
        return 0
    operands = [node.left, node.right]
    inside = sum(_instructions(one, beforehand, quotient) for one in operands)
    if _quotient(node):
        usual = _RECIPROCAL if _one(node.left) else _QUOTIENT
        return inside + (usual if quotient is None else quotient)
    adds = isinstance(node.op, (ast.Add, ast.Sub))
    fused = adds and any(_product(one) and not _known(one, beforehand) for one in operands)
    return inside if fused else inside + 1


def _quotient(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def _product(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


def _one(node: ast.expr) -> bool:
    literal = node.args[0] if isinstance(node, ast.Call) else node
    return isinstance(literal, ast.Constant) and literal.value == 1
