"""What some planes on their way through a few stations take: how much of what each does hides behind the others.

A closed network of queues: each plane goes to every station in turn, waits there for those before it, and begins anew.
One plane alone takes the sum of its times, which is no overlap at all; ever more of them come down to the largest,
which is the roofline. Source: mean value analysis, Reiser and Lavenberg, J. ACM 27(2), 1980.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Shares(NamedTuple):
    """Seconds from one plane that is done to the next, as shares: of each station, and of the delay."""

    stations: tuple[float, ...]
    delay: float

    @property
    def total(self) -> float:
        """Of all of them."""
        return sum(self.stations) + self.delay


def shares(demands_s: Sequence[float], delay_s: float, planes: int) -> Shares:
    """Of so many planes, one at least. demands_s: of a plane at each station; delay_s: where none waits for another."""
    waiting = [0.0] * len(demands_s)
    residence = list(demands_s)
    for count in range(1, max(1, planes) + 1):
        residence = [demand * (1 + queue) for demand, queue in zip(demands_s, waiting, strict=True)]
        round_s = sum(residence) + delay_s
        waiting = [count * one / round_s if round_s else 0.0 for one in residence]
    count = max(1, planes)
    return Shares(tuple(one / count for one in residence), delay_s / count)
