"""Samples of a test that are for every day: one in so many, and always one with each value of each parameter."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import combinations
from typing import Any

Fact = tuple[str, str]


def facts(parameters: Mapping[str, Any]) -> frozenset[Fact]:
    """What the parameters of a sample say: name and value, of a case or a configuration field by field."""
    return frozenset(fact for name, value in parameters.items() for fact in _facts(name, value))


def _facts(name: str, value: Any) -> Iterator[Fact]:
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and any(map(is_dataclass, value)):
        value = {str(n): part for n, part in enumerate(value)}
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _facts(f"{name}.{key}", part)
    elif value is None or isinstance(value, str | int | float | tuple | list):
        yield name, repr(value)
    else:  # its text may hold an address, which differs between processes
        yield name, getattr(value, "__qualname__", type(value).__name__)


def pairs(said: frozenset[Fact]) -> frozenset[tuple[Fact, Fact]]:
    """What a sample says two at a time."""
    return frozenset(combinations(sorted(said), 2))


def drawn(
    samples: Sequence[frozenset[Hashable]], one_in: int, costs: Sequence[float] | None = None, covers: int = 1
) -> set[int]:
    """Numbers of the samples for every day: by their facts a greedy cover, filled up at random to one in so many.

    costs: of the samples; the cheapest of some covers is taken, which begin in other orders.
    """
    dear = costs or [1.0] * len(samples)
    random_ = random.Random(len(samples))
    orders = [random_.sample(range(len(samples)), len(samples)) for _ in range(covers)]
    kept = min((_cover(samples, order, dear) for order in orders), key=lambda cover: sum(dear[n] for n in cover))
    others = [n for n in orders[0] if n not in kept]
    return {*kept, *others[: max(0, -(-len(samples) // one_in) - len(kept))]}


def few(samples: Sequence[frozenset[Hashable]], count: int) -> set[int]:
    """Numbers of so many samples, such that they have as many of the facts as a greedy choice finds."""
    order = random.Random(len(samples)).sample(range(len(samples)), len(samples))
    if count >= len(samples):
        return {*order}
    chosen = _cover(samples, order, [1.0] * len(samples))[:count] if count else []
    return {*chosen, *[n for n in order if n not in chosen][: count - len(chosen)]}


def _cover(samples: Sequence[frozenset[Hashable]], order: Sequence[int], costs: Sequence[float]) -> list[int]:
    """Take what is new for the least; leave out again what later ones have made needless, the dearest first."""
    missing, kept = set[Hashable]().union(*samples), list[int]()
    while missing:
        best = max(order, key=lambda n: len(samples[n] & missing) / costs[n])
        kept.append(best)
        missing -= samples[best]
    for n in sorted(kept, key=lambda n: costs[n], reverse=True):
        rest = [samples[m] for m in kept if m != n]
        if samples[n] <= set[Hashable]().union(*rest):
            kept.remove(n)
    return kept
