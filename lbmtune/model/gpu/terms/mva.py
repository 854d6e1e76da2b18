"""Mean value analysis: how much of the work of several stations overlaps if a few customers circulate.

A closed queueing network: each customer (a plane, a warp, a block) visits every station in turn, waits there for those
before it, and starts again. One customer takes the sum of its demands, which is no overlap; many approach the largest
demand, which is the roofline. Source: Reiser and Lavenberg, J. ACM 27(2), 1980.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Shares(NamedTuple):
    """Seconds between two completed customers, split by station and delay."""

    stations: tuple[float, ...]
    delay: float

    @property
    def total(self) -> float:
        """Return the seconds between two completed customers."""
        return sum(self.stations) + self.delay


def shares(demands_s: Sequence[float], delay_s: float, customers: int) -> Shares:
    """Solve the network for a number of customers, at least 1.

    demands_s: seconds of a customer at each station; delay_s: seconds that no customer shares with another.
    """
    queues = [0.0] * len(demands_s)
    residence = list(demands_s)
    for count in range(1, max(1, customers) + 1):
        residence = [demand * (1 + queue) for demand, queue in zip(demands_s, queues, strict=True)]
        round_s = sum(residence) + delay_s
        queues = [count * one / round_s if round_s else 0.0 for one in residence]
    count = max(1, customers)
    return Shares(tuple(one / count for one in residence), delay_s / count)
