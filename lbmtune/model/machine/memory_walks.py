"""Walks: access patterns of CPU kernels that decide their speed. Calibration measures them by name."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

Kind = Literal["in place", "copy", "streaming"]
TRANSFERS: dict[Kind, int] = {"in place": 2, "copy": 3, "streaming": 2}
"""Transfers of an element: an ordinary store allocates its line unless that was read (Wellein et al. 2006)."""
SCALAR_BYTES, LINE_BYTES = 4, 64
TOGETHER = (10, 13, 19)
"""Streams that share a set of the L1 cache: a few more than its usual ways, and all."""


class Walk(NamedTuple):
    """Streams that are read and written row by row.

    kind: each element is stored in place, in a second array, or there by non-temporal stores; access_bytes: of a load
    or store; shifted: rows start at different places of a cache line; ahead: lines are prefetched; grouped: streams
    lie in groups of one access each, as in an AoSoA.
    """

    kind: Kind
    access_bytes: int
    shifted: bool = False
    ahead: bool = False
    grouped: bool = False

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return _name_of(self)


@lru_cache(maxsize=256)
def _name_of(walk: Walk) -> str:
    said = [name for name in ("shifted", "ahead", "grouped") if getattr(walk, name)]
    return ", ".join([walk.kind, f"{walk.access_bytes} bytes", *said])


class Crowd(NamedTuple):
    """A walk with streams that start at the same place of a page, so that their lines share a set of the L1 cache.

    streams: number of them; the arrays that they are written to lie likewise.
    """

    walk: Walk
    streams: int

    @property
    def lines(self) -> int:
        """Return the lines of the set; non-temporal stores take none."""
        return self.streams * (2 if self.walk.kind == "copy" else 1)

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return f"{self.walk.name}, {self.lines} together"


class Filling(NamedTuple):
    """A walk through a share of the last cache by all cores together.

    Other virtual machines of the host may use a part of that cache, and it does not evict in the order of use.
    """

    walk: Walk
    share: float

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return f"{self.walk.name}, {self.share:.2f} of the last cache"


GLANCED = 2 / 3
"""Share of the last cache that a look at its present speed goes through."""
_FILLED = (1 / 3, GLANCED, 4 / 3)


def fillings(walk: Walk) -> tuple[Filling, ...]:
    """Return the shares of the last cache that are measured of a walk, up to more than it has."""
    return tuple(Filling(walk, share) for share in _FILLED)


def glance(vector_bits: int) -> Walk:
    """Return the walk that shows the present speed of a processor with vectors of a width, or with none."""
    return Walk("in place", vector_bits // 8 or SCALAR_BYTES)


@lru_cache(maxsize=16)
def crowds(widths: tuple[int, ...]) -> tuple[Crowd, ...]:
    """Return the crowds that are measured on a CPU with accesses of some widths in bytes."""
    kinds: tuple[Kind, ...] = "in place", "copy", "streaming"
    walks = [
        Walk(kind, width)
        for width in widths
        if width > SCALAR_BYTES
        for kind in (kinds if width == LINE_BYTES else kinds[:2])
    ]
    return tuple(Crowd(walk, some) for walk in walks for some in TOGETHER)


def calibrated(widths: tuple[int, ...]) -> Iterator[Walk]:
    """Yield the walks that are measured on a CPU with accesses of some widths in bytes."""
    for width in widths:
        for ahead in (False, True) if width > SCALAR_BYTES else (False,):
            for kind in ("in place", "copy"):
                yield from (Walk(kind, width, shifted, ahead) for shifted in (False, True))
                yield Walk(kind, width, ahead=ahead, grouped=True)
            if width == LINE_BYTES:
                yield Walk("streaming", width, ahead=ahead)
