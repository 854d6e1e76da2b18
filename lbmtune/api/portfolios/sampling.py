"""Draw the domains of a portfolio: those by which its rule is made, those that teach, and those of its checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

from lbmtune.records.best_json.kernel import Int3
from lbmtune.records.portfolio_store import MeasuredDomain, PortfolioAsked
from lbmtune.search.portfolio.domains import Domains, checked, parse_domains
from lbmtune.search.portfolio.plan import CHECKED, MOST_TAUGHT, TAUGHT

TEACH = 1
"""Visit of domains that teach; checks have the numbers after it."""
_FORESEEN, _IMAGINED, _APART = 16, 128, 1000
"""Domains by whose predictions the rule is made as well, those by whose laws it is, and how far their seeds are from
that of the checks."""


@dataclass(frozen=True)
class Sampling:
    """Domains of the range that was asked for. fits: whether the last resort takes a domain."""

    asked: PortfolioAsked
    fits: Callable[[Int3], bool]

    @property
    def space(self) -> Domains:
        """Return the range, or the list."""
        return parse_domains(self.asked.domains, self.asked.spec.case.stencil.dimensions)

    def unseen(self, count: int, seed: int, known: Sequence[Int3]) -> tuple[Int3, ...]:
        """Return domains that were neither searched nor are known otherwise."""
        return checked(self.space, count, seed, self.fits, [*self.asked.searched, *known])

    def of_check(self, visit: int, measured: Sequence[MeasuredDomain]) -> tuple[Int3, ...]:
        """Return the domains of a check, none of which was measured before it."""
        return self.unseen(CHECKED, self.asked.spec.seed + visit, [one.domain for one in measured if one.visit < visit])

    def foreseen(self) -> tuple[Int3, ...]:
        """Return domains by whose predictions the rule is made as well: drawn ones, and the corners of the range."""
        found = checked(self.space, _FORESEEN, self.asked.spec.seed + _APART, self.fits, [])
        return tuple(dict.fromkeys([*found, *self._corners()]))

    def teaching(self) -> tuple[Int3, ...]:
        """Return domains that teach: listed ones, else corners of the range but the largest, and drawn ones between."""
        space = self.space
        if space.listed:
            return tuple(one for one in space.listed if self.fits(one) and one not in self.asked.searched)
        corners = [one for one in self._corners() if one not in (*self.asked.searched, space.most)]
        drawn = self.unseen(TAUGHT, self.asked.spec.seed + TEACH, corners)
        return (*corners, *drawn[: max(TAUGHT - len(corners), TAUGHT // 2)])

    def imagined(self) -> tuple[Int3, ...]:
        """Return domains all over the range, none for a list, which are chosen for, and may teach, by laws."""
        return () if self.space.listed else self.unseen(_IMAGINED, self.asked.spec.seed + _APART + TEACH, [])

    @staticmethod
    def doubtful(imagined: Sequence[Int3], measured: Sequence[MeasuredDomain]) -> tuple[Int3, ...]:
        """Return those among which the next domain that teaches is chosen; none if enough have taught."""
        if sum(one.visit == TEACH for one in measured) >= MOST_TAUGHT:
            return ()
        known = {one.domain for one in measured}
        return tuple(one for one in imagined if one not in known)

    def _corners(self) -> list[Int3]:
        edges = product(*zip(self.space.least, self.space.most, strict=True))
        return [one for x, y, z in edges if self.fits(one := (x, y, z))]
