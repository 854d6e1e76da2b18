"""Walks: how a CPU kernel goes through memory, as far as that decides its speed. Calibration measures them by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

Kind = Literal["in place", "copy", "streaming"]
SHARES: dict[Kind, int] = {"in place": 2, "copy": 3, "streaming": 2}
"""Transfers of an element: an ordinary store fetches what it overwrites, unless that was read (Wellein et al. 2006)."""
SCALAR_BYTES, LINE_BYTES = 4, 64


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


def calibrated(widths: tuple[int, ...]) -> Iterator[Walk]:
    """What is measured on a CPU with accesses of so many bytes."""
    for width in widths:
        for ahead in (False, True) if width > SCALAR_BYTES else (False,):
            for kind in ("in place", "copy"):
                yield from (Walk(kind, width, shifted, ahead) for shifted in (False, True))
                yield Walk(kind, width, ahead=ahead, grouped=True)
            if width == LINE_BYTES:
                yield Walk("streaming", width, ahead=ahead)
