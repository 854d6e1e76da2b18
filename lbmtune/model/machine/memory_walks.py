"""Walks: how a CPU kernel goes through memory, as far as that decides its speed. Calibration measures them by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["in place", "copy", "streaming"]
TRANSFERS: dict[Kind, int] = {"in place": 2, "copy": 3, "streaming": 2}
"""Transfers of an element: an ordinary store fetches what it overwrites, unless that was read (Wellein et al. 2006)."""
SCALAR_BYTES, LINE_BYTES = 4, 64
TOGETHER = (10, 13, 19)
"""Streams that share a set of the L1 cache: a few more than most have ways, and all."""


class Walk(NamedTuple):
    """Streams that are read and written row by row.

    kind: each element back to where it came from, to a second array, or there by non-temporal stores;
    access_bytes: of a load or store; shifted: whether rows start anywhere in a cache line; ahead: whether lines are
    asked for before they are read; grouped: whether streams lie in groups of one access each, as in an AoSoA, and not
    apart.
    """

    kind: Kind
    access_bytes: int
    shifted: bool = False
    ahead: bool = False
    grouped: bool = False

    @property
    def name(self) -> str:
        """In words, as a machine's file has it."""
        said = [name for name in ("shifted", "ahead", "grouped") if getattr(self, name)]
        return ", ".join([self.kind, f"{self.access_bytes} bytes", *said])


class Crowd(NamedTuple):
    """A walk some of whose streams start at the same place of a page, so that their lines share a set of the L1 cache.

    streams: how many of them; those that are written elsewhere lie there likewise.
    """

    walk: Walk
    streams: int

    @property
    def lines(self) -> int:
        """Of the set: what is stored past the cache takes none of it."""
        return self.streams * (2 if self.walk.kind == "copy" else 1)

    @property
    def name(self) -> str:
        """In words, as a machine's file has it."""
        return f"{self.walk.name}, {self.lines} together"


class Filling(NamedTuple):
    """A walk through so much of the last cache by all cores together.

    Other machines of the same host may have a part of that cache, and it does not drop what was read longest ago.
    """

    walk: Walk
    share: float

    @property
    def name(self) -> str:
        """In words, as a machine's file has it."""
        return f"{self.walk.name}, {self.share:.2f} of the last cache"


GLANCED = 2 / 3
"""Of the last cache what is gone through to see what it does just now."""
_FILLED = (1 / 3, GLANCED, 4 / 3)


def fillings(walk: Walk) -> tuple[Filling, ...]:
    """What is measured of a walk, from little to more than there is."""
    return tuple(Filling(walk, share) for share in _FILLED)


def glance(vector_bits: int) -> Walk:
    """The walk that tells what a machine does just now, on a processor with such vectors, or with none."""
    return Walk("in place", vector_bits // 8 or SCALAR_BYTES)


def crowds(widths: tuple[int, ...]) -> Iterator[Crowd]:
    """What is measured on a CPU with vectors of so many bytes."""
    kinds: tuple[Kind, ...] = "in place", "copy", "streaming"
    for width in (one for one in widths if one > SCALAR_BYTES):
        for kind in kinds if width == LINE_BYTES else kinds[:2]:
            yield from (Crowd(Walk(kind, width), some) for some in TOGETHER)


def calibrated(widths: tuple[int, ...]) -> Iterator[Walk]:
    """What is measured on a CPU with accesses of so many bytes."""
    for width in widths:
        for ahead in (False, True) if width > SCALAR_BYTES else (False,):
            for kind in ("in place", "copy"):
                yield from (Walk(kind, width, shifted, ahead) for shifted in (False, True))
                yield Walk(kind, width, ahead=ahead, grouped=True)
            if width == LINE_BYTES:
                yield Walk("streaming", width, ahead=ahead)
