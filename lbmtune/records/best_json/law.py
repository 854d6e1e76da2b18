"""The time of a kernel as a function of the domain, as a best.json holds it: sums of formulas of the extents."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lbmtune.records.best_json.domain import each_evaluated, evaluated
from lbmtune.records.quantities import NotNegative, Number

CHUNKS = "chunks"
"""Name, in formulas, of the number of chunks of planes along z."""


def extents_of(domain: tuple[int, int, int]) -> dict[str, int]:
    """Return the extents by their names in formulas."""
    return dict(zip(("nx", "ny", "nz"), domain, strict=True))


@dataclass(frozen=True, kw_only=True)
class Chunks:
    """Choose how many blocks share the planes of a column: the number from 1 to `most` with the least `end`.

    It is the fewest of several. most, end: in C, of nx, ny and nz, `end` also of `chunks`, the number itself.
    """

    most: str
    end: str

    def count(self, domain: tuple[int, int, int]) -> int:
        """Return the number of chunks for a domain. Raises InputError for what is no formula."""
        every, ends = self._ends(domain)
        return int(every[ends.argmin()])

    def likely(self, domain: tuple[int, int, int]) -> tuple[int, ...]:
        """Return the numbers, at most `LIKELY`, that may end first, that of `count` before the others.

        Ends are at most an eighth after the least, numbers at least an eighth apart, and no chunk is empty. Raises
        InputError for what is no formula.
        """
        every, ends = self._ends(domain)
        longest = -(-domain[2] // every)
        near = (8 * ends <= 9 * ends.min()) & (-(-domain[2] // longest) == every)
        found = [int(every[ends.argmin()])]
        for n in every[near][ends[near].argsort(kind="stable")].tolist():
            if len(found) < LIKELY and all(8 * abs(n - other) >= other for other in found):
                found.append(n)
        return tuple(found)

    def _ends(self, domain: tuple[int, int, int]) -> tuple[Any, Any]:
        """Return all numbers and their ends, as arrays."""
        import numpy as np  # here: the command line reads records without arrays

        numbers = extents_of(domain)
        every = np.arange(1, max(1, evaluated(self.most, numbers)) + 1)
        return every, np.broadcast_to(each_evaluated(self.end, {**numbers, CHUNKS: every}), every.shape)


@dataclass(frozen=True, kw_only=True)
class LawTerm:
    """A part of the time of a step: picoseconds for each of a number. count: that number in C, of nx, ny and nz.

    Of a kernel with `Kernel.chunks`, also of that number, `chunks`.
    """

    picoseconds: NotNegative
    count: str

    @property
    def said(self) -> str:
        """Return the term in C."""
        return f"{float(self.picoseconds)} * ({self.count})"


Law = tuple[LawTerm, ...]
"""The time of a step is the sum of its terms, times what corrections make of it."""
LIKELY = 4
"""Numbers of chunks that are worth measuring at most."""
FALL = 2
"""How fast a correction loses weight with the distance between domains."""


@dataclass(frozen=True, kw_only=True)
class Correction:
    """Add a share to the time by a law, on a domain that was measured and near it; negative: less.

    Its weight is 1 / (1 + FALL d): d is the sum over the axes of (n - m)^2 / (n m), with the extents of both domains.
    """

    domain: tuple[int, int, int]
    share: Number

    def said(self, near: str) -> str:
        """Return the share of a domain in C. near: name of the function of the weight."""
        x, y, z = self.domain
        return f"{float(self.share)} * {near}(nx, ny, nz, {x}, {y}, {z})"


Corrections = tuple[Correction, ...]


def weight(domain: Iterable[Any], other: Iterable[Any]) -> Any:
    """Return how much a correction of one domain counts on another one. Extents may be arrays."""
    return 1 / (1 + FALL * sum((n - m) * (n - m) / (n * m) for n, m in zip(domain, other, strict=True)))


def picoseconds(law: Law, corrections: Corrections, numbers: Mapping[str, int]) -> float:
    """Return the time of a step by a law. numbers: nx, ny and nz, and `chunks`. Raises InputError."""
    domain = [numbers[name] for name in ("nx", "ny", "nz")]
    share = float(sum(one.share * weight(domain, one.domain) for one in corrections))
    return (1 + share) * sum(one.picoseconds * evaluated(one.count, numbers) for one in law)


def said(law: Law) -> str:
    """Return a law in C, without corrections."""
    return " + ".join(one.said for one in law)
