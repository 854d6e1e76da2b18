"""A `Strategy` of the present choice: compiled and measured in the order of its proposals."""

from collections.abc import Collection, Sequence

from lbmtune.catalogue.config import KernelConfig
from lbmtune.records.study import StudySpec
from lbmtune.search.choice import Choice
from lbmtune.search.estimates import Estimate
from lbmtune.search.interfaces import Gain, Seen, Strategy


class FromChoice:
    """Proposes by `Choice`."""

    def __init__(
        self, configs: Sequence[KernelConfig], expected: Sequence[float], seed: int, tiers: Sequence[int] | None, n: int
    ) -> None:
        self._choice = Choice(configs, expected, seed, tiers, 1, n)
        self._order: dict[int, int] = {}

    def wanted(self, count: int) -> list[int]:
        """Return the next proposals."""
        found = [self._choice.propose() for _ in range(min(count, self._choice.remaining))]
        self._order |= {index: len(self._order) + n for n, index in enumerate(found)}
        return found

    def next(self, ready: Collection[int]) -> int:
        """Return the earliest proposal."""
        return min(ready, key=lambda index: self._order[index])

    def refine(self, index: int, mlups: float | None) -> None:
        """Do nothing: the choice knows estimates alone."""

    def observe(self, index: int, seen: Seen) -> None:
        """Tell the choice."""
        self._choice.observe(index, seen.mlups)

    def gain(self) -> Gain | None:
        """Return None: the choice does not tell."""
        return None


def made_strategy(configs: Sequence[KernelConfig], found: Sequence[Estimate], spec: StudySpec) -> Strategy:
    """Return the strategy of a study. found: estimates of the configurations."""
    tiers = [one.footprint_bytes for one in found] if spec.objective == "footprint" else None
    return FromChoice(configs, [one.mlups for one in found], spec.seed, tiers, spec.budget.sample)
