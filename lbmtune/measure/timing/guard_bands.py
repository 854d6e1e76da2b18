"""Guard bands: bytes of a known pattern around arrays, by which writes outside an array are noticed."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lbmtune.backend.protocol import Array

GUARD_BYTES = 1 << 21
"""Least bytes of a band. Arrays start at multiples of it, so that equal configurations use equal cache sets."""
PATTERN = 0xFF
"""Bytes of NaN in every storage format that has one: what is read there spoils the result."""


class GuardedBlock:
    """A block of bytes (uint8) with arrays in ascending order; the bytes between them are guarded."""

    def __init__(self, block: Array) -> None:
        self.block = block
        self._arrays: list[tuple[int | None, int, int]] = [(None, 0, 0)]

    @property
    def next_start(self) -> int:
        """Return the first byte that another array may have, behind a band."""
        return aligned(self._arrays[-1][2]) + GUARD_BYTES

    def add(self, number: int, start: int, size: int) -> Array:
        """Return the bytes of an array, and fill the bands around it. number: among all arrays of the device."""
        before, end = self._arrays[-1][2], start + size
        self._arrays.append((number, start, end))
        self.block[before:start] = self.block[end : self.next_start] = PATTERN
        return self.block[start:end]

    def bands(self) -> Iterator[Array]:
        """Yield the bytes before, between and behind the arrays, in order."""
        return (self.block[start:end] for (_, _, start), (_, end, _) in pairwise(self._ends))

    def damage(self, names: Sequence[str]) -> Iterator[str]:
        """Yield which bytes were written in each band, seen from the nearer array. names: by number, repeated."""
        for band, ((before, *_), (after, *_)) in zip(self.bands(), pairwise(self._ends), strict=True):
            at = (band != PATTERN).nonzero()[0]
            if not at.size:
                continue
            behind, ahead = int(at[-1]) + 1, band.size - int(at[0])
            nearer = after if before is None or (after is not None and ahead < behind) else before
            assert nearer is not None
            where = f"{ahead} bytes before" if nearer == after else f"{behind} bytes behind"
            yield f"{names[nearer % len(names)]}: up to {where} it"

    @property
    def _ends(self) -> list[tuple[int | None, int, int]]:
        last = min(self.next_start, self.block.size)
        return [*self._arrays, (None, last, last)]


def aligned(size: int) -> int:
    """Return a number of bytes rounded up to whole bands."""
    return -(-size // GUARD_BYTES) * GUARD_BYTES
