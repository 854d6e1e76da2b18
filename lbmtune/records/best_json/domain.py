"""Rules that the domain of a kernel must obey, as a best.json holds them, and their check."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lbmtune.errors import InputError

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}
"""Those of formulas in C; none of the numbers is negative."""
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {ast.Lt: operator.lt, ast.Gt: operator.gt}
"""Those of formulas in C, whose value is 0 or 1."""


@dataclass(frozen=True, kw_only=True)
class DomainLimit:
    """A number is a multiple of `multiple`, at least `least` and, unless that is null, at most `most`.

    value: the number in C, of the extents nx, ny, nz of the domain and NX, NY, NZ of its storage (`Storage.extents`).
    per_multiprocessor: `most` is for each multiprocessor of the device. because: the reason.
    """

    value: str
    because: str
    multiple: int = 1
    least: int = 0
    most: int | None = None
    per_multiprocessor: bool = False

    def __post_init__(self) -> None:
        """Raise InputError if no number is a multiple."""
        if self.multiple < 1:
            raise InputError(f"a multiple of {self.multiple} is none of a domain")

    def refusal(self, numbers: Mapping[str, int], multiprocessors: int = 1) -> str | None:
        """Return why a domain does not fit, or None. numbers: nx, ny, nz, NX, NY and NZ.

        Raises InputError if the value is no formula.
        """
        found = evaluated(self.value, numbers)
        most = self.most if self.most is None else self.most * (multiprocessors if self.per_multiprocessor else 1)
        against = "less than", self.least
        if found >= self.least:
            if most is not None and found > most:
                against = "more than", most
            elif found % self.multiple:
                against = "not a multiple of", self.multiple
            else:
                return None
        what, number = against
        return f"{self.value}={found:,} is {what} {number:,} ({self.because})"


@dataclass(frozen=True, kw_only=True)
class DomainRules:
    """The conditions on a domain: on another one a kernel is wrong or fails, or is none that a study would take.

    multiple, least, most: of nx, ny and nz, because of `because`; limits: on other numbers.
    """

    multiple: tuple[int, int, int]
    least: tuple[int, int, int]
    most: tuple[int, int, int]
    because: tuple[str, ...]
    limits: tuple[DomainLimit, ...]

    def __post_init__(self) -> None:
        """Raise InputError if no extent is a multiple."""
        _ = [*self.conditions()]

    def refusal(self, numbers: Mapping[str, int], multiprocessors: int | None = None) -> str | None:
        """Return why a domain does not fit, or None. numbers: nx, ny, nz, NX, NY and NZ.

        multiprocessors: of the device; None: what depends on them is not checked. Raises InputError for what is no
        formula.
        """
        known = (one for one in self.conditions() if multiprocessors is not None or not one.per_multiprocessor)
        return next((reason for one in known if (reason := one.refusal(numbers, multiprocessors or 1))), None)

    def conditions(self) -> Iterator[DomainLimit]:
        """Yield all conditions, those on nx, ny and nz first."""
        for axis, name in enumerate(("nx", "ny", "nz")):
            multiple, least, most = self.multiple[axis], self.least[axis], self.most[axis]
            reasons = "; ".join(one.partition(": ")[2] for one in self.because if one.startswith(name))
            yield DomainLimit(value=name, because=reasons, multiple=multiple, least=least, most=most)
        yield from self.limits


def evaluated(formula: str, numbers: Mapping[str, int]) -> int:
    """Return the value of a formula in C with some numbers in the place of names. Raises InputError."""
    return int(each_evaluated(formula, numbers))


def each_evaluated(formula: str, numbers: Mapping[str, Any]) -> Any:
    """Return the values of a formula in C if some of the numbers are arrays. Raises InputError."""
    try:
        return _evaluated(_parsed(formula), numbers)
    except (SyntaxError, ValueError, KeyError, TypeError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise InputError(f"{formula[:80]!r} is no formula of {', '.join(numbers)}; export the study again.") from error


@lru_cache(maxsize=4096)
def _parsed(formula: str) -> ast.expr:
    return ast.parse(formula.strip(), mode="eval").body


def _evaluated(node: ast.expr, numbers: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluated(node.left, numbers), _evaluated(node.right, numbers))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compared = _COMPARISONS[type(node.ops[0])]
        return compared(_evaluated(node.left, numbers), _evaluated(node.comparators[0], numbers)) + 0
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return numbers[node.id]
    raise ValueError(f"{node} is none of the parts of a formula")
