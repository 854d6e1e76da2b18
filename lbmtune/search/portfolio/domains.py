"""The domains of a portfolio: as they are asked for, those to search, and those to check, drawn by a seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, prod

import numpy as np

from lbmtune.errors import InputError

Int3 = tuple[int, int, int]
Fits = Callable[[Int3], bool]
"""Says whether the default kernel takes a domain."""
_ROUND = 16
"""Extents of common domains are multiples of it, if the range has any."""
_LARGE = 0.75
"""Share of a range, in logarithms, up to which cubes are searched: larger ones are alike, and take most of the time."""
_TRIES = 50
"""Draws for each domain that is wanted, of which some do not fit or are known."""
MOST_CELLS_ALONG = 2**20
"""Cells along an axis: more are a slip of the pen."""


@dataclass(frozen=True)
class Domains:
    """The domains that a portfolio covers: all with extents from least to most. listed: those that were named."""

    text: str
    least: Int3
    most: Int3
    listed: tuple[Int3, ...] = ()


def parse_domains(text: str, dimensions: int = 3) -> Domains:
    """Return the domains of '64:512', or of a list such as '64,96x96x48,256'. Raises InputError."""
    if ":" in text:
        found = [_extents(part, dimensions, text) for part in text.split(":")]
        if len(found) != 2 or "," in text or any(low > high for low, high in zip(*found, strict=True)):
            raise _refused(text)
        if found[0] == found[1]:
            raise InputError(f"--domains {text} is one domain (use --domain {text.partition(':')[0]}).")
        return Domains(text, found[0], found[1])
    listed = tuple(dict.fromkeys(_extents(part, dimensions, text) for part in text.split(",")))
    if len(listed) == 1:
        raise InputError(f"--domains {text} is one domain (use --domain {text}, or a range such as 64:512).")
    least, most = (_over(pick, listed) for pick in (min, max))
    return Domains(text, least, most, listed)


def _over(pick: Callable[[Sequence[int]], int], domains: Sequence[Int3]) -> Int3:
    x, y, z = (pick([one[axis] for one in domains]) for axis in range(3))
    return x, y, z


def _extents(part: str, dimensions: int, text: str) -> Int3:
    if not re.fullmatch(r"\s*[0-9]{1,7}(x[0-9]{1,7})*\s*", part):
        raise _refused(text)
    numbers = [int(one) for one in part.split("x")]
    if len(numbers) == 1:
        numbers *= dimensions
    if len(numbers) == 2 == dimensions:
        numbers.append(1)
    numbers = numbers if len(numbers) == 3 else []
    if not numbers or not all(0 < one <= MOST_CELLS_ALONG for one in numbers) or numbers[dimensions:] not in ([], [1]):
        raise _refused(text)
    x, y, z = numbers
    return x, y, z


def _refused(text: str) -> InputError:
    return InputError(
        f"--domains {text} is not supported (use a range such as 64:512, or a list such as 64,96x96x48,256): each is "
        f"one extent, or those along x, y and z, from 1 to {MOST_CELLS_ALONG:,}, and a range begins with the smaller."
    )


def searched(space: Domains, count: int, seed: int, fits: Fits) -> tuple[Int3, ...]:
    """Return the domains to search, the smallest first: spread over a list, or cubes with odd and oblong ones between.

    Raises InputError if the default kernel takes none.
    """
    listed = sorted(filter(fits, space.listed), key=lambda one: (prod(one), one))
    if listed:
        places = np.linspace(0, len(listed) - 1, min(count, len(listed))).round().astype(int)
        return tuple(listed[place] for place in dict.fromkeys(places.tolist()))
    found = [one for one in _cubes(space, (count + 1) // 2) if fits(one)]
    for one in _drawn(space, seed, (_odd, _oblong), _TRIES * count):
        if len(found) >= count:
            break
        if one not in found and fits(one):
            found.append(one)
    if not found:
        raise InputError(f"--domains {space.text} is not supported (use smaller ones): the default kernel takes none.")
    return tuple(sorted(found, key=lambda one: (prod(one), one)))


def checked(space: Domains, count: int, seed: int, fits: Fits, known: Sequence[Int3]) -> tuple[Int3, ...]:
    """Return domains that are not known: those of a list first, then drawn ones, fewer if a range has no more."""
    found = [one for one in space.listed if fits(one) and one not in known]
    kinds = (_round, _odd, _oblong, _any)
    for one in _drawn(space, seed, kinds, _TRIES * count):
        if len(found) >= count:
            break
        if one not in found and one not in known and fits(one):
            found.append(one)
    return tuple(found[:count])


def _cubes(space: Domains, count: int) -> Iterator[Int3]:
    """Yield different domains from the smallest to a large one, in equal ratios."""
    ranges = [*zip(space.least, space.most, strict=True)]
    shares = [_LARGE * n / (count - 1) for n in range(1, count)] if count > 1 else [0.5]
    larger = [
        _made(space, [_rounded(low * (high / low) ** share, low, high) for low, high in ranges]) for share in shares
    ]
    yield from dict.fromkeys([space.least, *larger] if count > 1 else larger)


def _rounded(value: float, low: int, high: int) -> int:
    near = _ROUND * round(value / _ROUND)
    return near if low <= near <= high else min(max(round(value), low), high)


Draw = Callable[[np.random.Generator, Sequence[tuple[int, int]]], list[int]]


def _drawn(space: Domains, seed: int, kinds: Sequence[Draw], count: int) -> Iterator[Int3]:
    random, ranges = np.random.default_rng(seed), [*zip(space.least, space.most, strict=True)]
    for number in range(count):
        yield _made(space, kinds[number % len(kinds)](random, ranges))


def _made(space: Domains, extents: Sequence[int]) -> Int3:
    x, y, z = (min(max(n, low), high) for n, low, high in zip(extents, space.least, space.most, strict=True))
    return x, y, z


def _between(random: np.random.Generator, low: float, high: float) -> int:
    """Return a number whose logarithm is drawn evenly."""
    return round(exp(random.uniform(log(low), log(high))))


def _any(random: np.random.Generator, ranges: Sequence[tuple[int, int]]) -> list[int]:
    return [_between(random, low, high) for low, high in ranges]


def _round(random: np.random.Generator, ranges: Sequence[tuple[int, int]]) -> list[int]:
    return [_rounded(_between(random, low, high), low, high) for low, high in ranges]


def _odd(random: np.random.Generator, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return extents near one another, each odd."""
    share = random.uniform()
    near = [low * (high / low) ** share * random.uniform(0.9, 1.1) for low, high in ranges]
    return [min(2 * int(one / 2) + 1, high - (high + 1) % 2) for one, (_, high) in zip(near, ranges, strict=True)]


def _oblong(random: np.random.Generator, ranges: Sequence[tuple[int, int]]) -> list[int]:
    """Return a long, a short and any extent, along axes by chance."""
    order, found = random.permutation(3), [0, 0, 0]
    for axis, (low_share, high_share) in zip(order, ((0.75, 1.0), (0.0, 0.25), (0.0, 1.0)), strict=True):
        low, high = ranges[axis]
        found[axis] = _between(random, low * (high / low) ** low_share, low * (high / low) ** high_share)
    return found
