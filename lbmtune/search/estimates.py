"""Predictions of many configurations, in parallel."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cores import usable_cores
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Prediction

_BATCH, _ALONE = 1000, 8000
"""Configurations that a process takes at once, and so few that they are predicted before other processes have begun."""


class Estimate(NamedTuple):
    """The part of a prediction that ranks configurations."""

    mlups: float
    footprint_bytes: int


def estimates(predict: Callable[[KernelConfig], Prediction], configs: Sequence[KernelConfig]) -> list[Estimate]:
    """Predict configurations, in their order. predict: a pure function, pickled if there are many."""
    task = partial(_estimate, predict)
    if len(configs) <= _ALONE or usable_cores() < 2:
        return list(map(task, configs))
    with pool(usable_cores()) as processes:
        return list(mapped(processes, task, configs, _BATCH))


def _estimate(predict: Callable[[KernelConfig], Prediction], config: KernelConfig) -> Estimate:
    one = predict(config)
    return Estimate(one.mlups, one.footprint_bytes)
