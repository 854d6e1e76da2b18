"""Lengths of the chunks of planes that thread blocks of temporal blocking go up, such that waves of blocks are full.

A thread block takes the planes of its chunk and `2 x steps` more, which are read again. Blocks of all columns of tiles
start in order, those of the lowest chunks first, and each place of the device takes the next one when it is free.
"""

from functools import lru_cache
from itertools import count

_EVERY = 1024
"""Planes up to which all lengths are compared; beyond, equal parts."""
_PARTS = 128
_NEAR_OF_CLASS, _NEAR_OF_EQUAL = 1.15, 1.2
"""Times the shortest end, up to which the best length of a class of size, and equal parts are kept."""
_EQUAL, _WAVES = (1, 2, 3, 4, 6, 8, 12), range(2, 6)


def end(planes: int, length: int, again: int, columns: int, places: int) -> int:
    """Return when the last block ends, in planes. again: planes that each chunk reads besides; places: for blocks."""
    whole, rest = divmod(planes, length)
    long, short = length + again, rest + again
    rounds, late = divmod(columns * whole, places)
    full = (rounds + (late > 0)) * long
    if not rest:
        return full
    # the shorter last chunks: some places are free one long chunk before the `late` ones
    early = places - late
    first = next(n for n in count(1) if early * n + late * max(0, (n * short - long) // short) >= columns)
    if not late:
        return rounds * long + first * short
    second = next(n for n in count() if early * ((long + n * short) // short) + late * n >= columns)
    return max(full, rounds * long + min(first * short, long + second * short))


@lru_cache(maxsize=4096)
def uniform_lengths(planes: int, steps: int, columns: int, places: int) -> tuple[int, ...]:
    """Return the best length of each class of size, down to an eighth of the planes, and equal parts that end as soon.

    Shorter chunks than the best read more planes again, and lose less where blocks differ in speed.
    """
    least = min(planes, 2 * steps)
    every = range(least, planes + 1) if planes <= _EVERY else sorted({-(-planes // n) for n in range(1, _PARTS + 1)})
    ends = {n: end(planes, n, 2 * steps, columns, places) for n in every if n >= least}
    shortest = min(ends.values())
    classes = ([n for n in ends if planes >> (c + 1) < n <= planes >> c] for c in range(4))
    best = {min(one, key=lambda n: (ends[n], -n)) for one in classes if one}
    equal = {-(-planes // n) for n in _EQUAL} & ends.keys()
    kept = {n for n in best if ends[n] <= _NEAR_OF_CLASS * shortest}
    kept |= {n for n in equal if ends[n] <= _NEAR_OF_EQUAL * shortest}
    return tuple(sorted(kept))


def tapered_lengths(planes: int, steps: int, columns: int, places: int) -> tuple[int, ...]:
    """Return equal parts of which the places take two to five each; those that start later are then shorter."""
    parts = {-(-waves * places // columns) for waves in _WAVES}
    return tuple(sorted({max(2 * steps, -(-planes // n)) for n in parts if n <= planes}))
