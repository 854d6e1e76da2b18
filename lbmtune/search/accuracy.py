"""Bounds on the accuracy of kernels: restrict a space to the configurations that stay within one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lbmtune.catalogue.config import KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Accuracy
from lbmtune.search.kinds import Rounding, rounding_of, steps_per_launch
from lbmtune.search.space import Space

Accurate = Callable[[KernelConfig], Accuracy | None]


def within(space: Space, bound: float, accuracy: Accurate) -> Space:
    """Return the configurations whose rounding stays within a bound; the others count as illegal, with the reason.

    bound: relative L2 error of the velocity after many steps. Raises InputError if no configuration stays.
    """
    roundings = {rounding_of(config): config for config in reversed(space.configs)}
    reasons = {rounding: excess(accuracy(config), rounding, bound) for rounding, config in roundings.items()}
    configs = tuple(config for config in space.configs if not reasons[rounding_of(config)])
    if not configs:
        raise InputError(
            f"no configuration is accurate enough: {next(iter(reasons.values()))}; allow more or change storage."
        )
    lost = {
        reason: sum(rounding_of(config) == rounding for config in space.configs)
        for rounding, reason in reasons.items()
        if reason
    }
    return replace(space, configs=configs, illegal={**space.illegal, **lost})


def excess(accuracy: Accuracy | None, rounding: Rounding, bound: float) -> str:
    """Explain why kernels of a rounding exceed a bound; empty if they do not."""
    state, storage, compute, steps = rounding
    what = f"{state} stored as {storage}, computed in {compute}, {steps_per_launch(steps)}"
    after = accuracy.after if accuracy else None
    if after is None:
        return f"{what}: the accuracy is unknown, and the study allows {bound:g}"
    if after.velocity is not None and after.velocity <= bound:
        return ""
    error = "no finite number" if after.velocity is None else f"{after.velocity:.2g}"
    return f"{what}: error of the velocity after {after.steps} steps {error}; the study allows {bound:g}"
