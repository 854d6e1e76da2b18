"""Predictions of many configurations, in parallel, and refined ones of those that lead."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cores import usable_cores
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Prediction

Repredict = Callable[[Sequence[KernelConfig]], list[Prediction | None]]
"""Predicts configurations with the resources that their compiler reports; None if one does not compile."""
_BATCH = 1000
"""Configurations that a process takes at once."""


class Estimate(NamedTuple):
    """The part of a prediction that ranks configurations."""

    mlups: float
    footprint_bytes: int


def estimates(predict: Callable[[KernelConfig], Prediction], configs: Sequence[KernelConfig]) -> list[Estimate]:
    """Predict configurations, in their order. predict: a pure function, pickled if there are several batches."""
    task = partial(_estimate, predict)
    if len(configs) <= _BATCH or usable_cores() < 2:
        return list(map(task, configs))
    with pool(usable_cores()) as processes:
        return list(mapped(processes, task, configs, _BATCH))


def _estimate(predict: Callable[[KernelConfig], Prediction], config: KernelConfig) -> Estimate:
    one = predict(config)
    return Estimate(one.mlups, one.footprint_bytes)


def refined(
    expected: Sequence[float], configs: Sequence[KernelConfig], repredict: Repredict, count: int
) -> list[float]:
    """Return expected MLUPS with those of the first `count` predicted again from compiled resources.

    Estimates of registers put kernels with spills first. One that does not compile keeps its estimate: its trial
    reports the reason.
    """
    found = list(expected)
    first = sorted(range(len(found)), key=lambda n: -found[n])[:count]
    for n, one in zip(first, repredict([configs[n] for n in first]), strict=True):
        found[n] = one.mlups if one else found[n]
    return found
