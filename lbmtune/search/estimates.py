"""What a model expects of many configurations, by as many processes as there are cores, and of compiled ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cores import pool, usable_cores
from lbmtune.records import Prediction

Anew = Callable[[Sequence[KernelConfig]], list[Prediction | None]]
"""Predicts configurations by what their compiler says of them; None: of what does not compile."""
_SHARE = 1000
"""Configurations that a process takes before it asks for more; below two shares none is started."""


class Estimate(NamedTuple):
    """Of a prediction what puts configurations in order."""

    mlups: float
    footprint_bytes: int


def estimates(predict: Callable[[KernelConfig], Prediction], configs: Sequence[KernelConfig]) -> list[Estimate]:
    """In the order of the configurations. predict: a pure function, which is pickled where they are many."""
    shares = [configs[start : start + _SHARE] for start in range(0, len(configs), _SHARE)]
    one = partial(_of_share, predict)
    if len(shares) < 2 or usable_cores() < 2:
        return [found for share in shares for found in one(share)]
    with pool(usable_cores()) as processes:
        return [found for share in processes.map(one, shares) for found in share]


def _of_share(predict: Callable[[KernelConfig], Prediction], configs: Sequence[KernelConfig]) -> list[Estimate]:
    predictions = map(predict, configs)
    return [Estimate(one.mlups, one.footprint_bytes) for one in predictions]


def refined(expected: Sequence[float], configs: Sequence[KernelConfig], predict_anew: Anew, count: int) -> list[float]:
    """The same where those that lead are predicted anew: estimates of registers put spilling kernels first.

    expected: MLUPS, in the order of the configurations; count: how many lead. What does not compile stays as it is: it
    is for a trial to say so.
    """
    found = list(expected)
    first = sorted(range(len(found)), key=lambda n: -found[n])[:count]
    for n, one in zip(first, predict_anew([configs[n] for n in first]), strict=True):
        found[n] = one.mlups if one else found[n]
    return found
