"""Write what a domain must obey as data: rules refuse a domain by it, and best.json has its conditions from it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

from lbmtune.catalogue.layouts.layout import Extents, Int


@dataclass(frozen=True)
class Place:
    """A domain and its extents in storage, which may take long to count; ints or traced values."""

    cells: tuple[Int, Int, Int]
    storage: Callable[[], Extents]

    @property
    def stored(self) -> Extents:
        """Return the extents in storage."""
        return self.storage()


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A number that depends on the domain is a multiple of one number, at least another one, and at most a third.

    value: the number; said: the sentence against the domain of the case, a format of `value`; because: why, in short.
    multiprocessors: those of the device if `most` is what one of them holds; None: `most` holds as it is.
    """

    value: Callable[[Place], Int]
    said: str
    because: str
    multiple: int = 1
    least: int = 0
    most: int | None = None
    multiprocessors: int | None = None

    def holds(self, place: Place) -> bool:
        """Return whether a domain obeys it."""
        value, times = self.value(place), 1 if self.multiprocessors is None else self.multiprocessors
        enough = self.most is None or value <= self.most * times
        return bool(enough and value >= self.least and value % self.multiple == 0)

    def refusal(self, place: Place) -> str:
        """Return why a domain does not."""
        return self.said.format(value=self.value(place))


def along(axis: int) -> Callable[[Place], Int]:
    """Return the extent of a domain along an axis as a value."""
    return lambda place: place.cells[axis]


def sites(place: Place) -> Int:
    """Return the cells of a domain."""
    nx, ny, nz = place.cells
    return nx * ny * nz


def blocks(place: Place, cells: Sequence[int], axis: int) -> Int:
    """Return the blocks of so many cells that cover a domain along an axis."""
    return (place.cells[axis] + (cells[axis] - 1)) // cells[axis]


def at_least(cells: Sequence[int], because: str, said: str, axes: Sequence[int] = (0, 1, 2)) -> Iterator[Condition]:
    """Yield the conditions that a domain has so many cells along some axes."""
    for axis in axes:
        yield Condition(value=along(axis), least=cells[axis], because=because, said=said)


class DomainRule:
    """A rule about the domain. checks: the reasons against a configuration on any domain, and conditions, in order."""

    __name__: str

    def __init__(self, checks: Callable[[Any, Any, Any], Iterator[str | Condition]]) -> None:
        self._checks = checks
        update_wrapper(self, checks)

    def __call__(self, case: Any, config: Any, limits: Any) -> str | None:
        """Return the first reason, or what the first condition says that does not hold; None if there is none."""
        place = Place(case.domain, lambda: config.stored_extents(case))
        without_solid = Place(case.domain, lambda: config.most_extents(case) or config.stored_extents(case))
        for one in self._checks(case, config, limits):
            if isinstance(one, str):
                return one
            # what is enough if no cell is solid is enough, and solid cells need not be counted
            if not ((one.most is not None and one.holds(without_solid)) or one.holds(place)):
                return one.refusal(place)
        return None

    def conditions(self, case: Any, config: Any, limits: Any) -> Iterator[Condition]:
        """Yield the conditions, which are the same for every domain but for what they say."""
        return (one for one in self._checks(case, config, limits) if isinstance(one, Condition))
