"""What a model expects of many configurations, by as many processes as there are cores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cores import pool, usable_cores
from lbmtune.records import Prediction

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
