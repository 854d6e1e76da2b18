"""Bounds that a study sets: the configurations within them, and the least values that can be had."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil, floor, inf, isfinite, log10
from typing import TypeVar

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.errors import InputError
from lbmtune.records import Accuracy
from lbmtune.records.spec import StudySpec
from lbmtune.search.kinds import Rounding, rounding_of
from lbmtune.search.spaces.space import Space, check_any_is_legal, legal_set

Accurate = Callable[[KernelConfig], Accuracy | None]
"""Measures the accuracy of a configuration; None if it has none."""
T = TypeVar("T")
_KIB, _MIB = 1 << 10, 1 << 20


def allowed(limits: Limits, spec: StudySpec) -> Limits:
    """Return the limits of a device with no more memory than a study allows a kernel."""
    most = spec.max_footprint_bytes
    if most is None or most >= limits.memory_bytes:
        return limits
    return replace(limits, memory_bytes=most, memory_asked=True)


def legal_of(spec: StudySpec, backend: str, limits: Limits) -> Space:
    """Return the legal configurations of a study on a device. Raises InputError, with the least footprint that is."""
    return _found(partial(legal_set, seconds=spec.budget.seconds or inf), spec, backend, limits)


def check_any_of(spec: StudySpec, backend: str, limits: Limits) -> None:
    """Look for the first of them only, which is quick if there are many. Raises as `legal_of` does."""
    _found(check_any_is_legal, spec, backend, limits)


def _found(find: Callable[..., T], spec: StudySpec, backend: str, limits: Limits) -> T:
    asked, bounded = (spec.case, backend, spec.axes[backend]), allowed(limits, spec)
    try:
        return find(*asked, bounded, spec.families)
    except InputError:
        if not bounded.memory_asked:
            raise
        every = legal_set(*asked, limits, spec.families).configs
    sizes = {config: footprint_bytes(spec.case, config) for config in every}
    least = min(every, key=sizes.__getitem__)
    raise InputError(
        f"--max-footprint {_size(bounded.memory_bytes)} is not supported for {spec.name} (use {_size(sizes[least])} or "
        f"more): that is the footprint of {least.key}, the smallest of {len(every):,} legal configurations."
    )


def _size(size_bytes: int) -> str:
    """Return a size as it is given to an option, not rounded down."""
    unit, name = (_MIB, "MiB") if size_bytes >= _MIB else (_KIB, "KiB")
    return f"{ceil(size_bytes / unit)}{name}" if size_bytes >= unit else str(size_bytes)


def within(space: Space, bound: float, accuracy: Accurate) -> Space:
    """Return the configurations whose rounding stays within a bound; the others count as illegal, with the reason.

    bound: relative L2 error of the velocity after many steps. Raises InputError if no configuration stays.
    """
    roundings = {rounding_of(config): config for config in reversed(space.configs)}
    found = {rounding: accuracy(config) for rounding, config in roundings.items()}
    reasons = {rounding: excess(one, rounding, bound) for rounding, one in found.items()}
    configs = tuple(config for config in space.configs if not reasons[rounding_of(config)])
    if not configs:
        errors = {rounding: one.error if one else inf for rounding, one in found.items()}
        least = min(errors, key=lambda rounding: errors[rounding])
        most = errors[least]
        use = f"use --max-error {_rounded_up(most)} or more" if isfinite(most) else "allow more"
        raise InputError(f"no configuration is accurate enough: {reasons[least]}; {use}, or change storage.")
    lost = {
        reason: sum(rounding_of(config) == rounding for config in space.configs)
        for rounding, reason in reasons.items()
        if reason
    }
    return replace(space, configs=configs, illegal={**space.illegal, **lost})


def _rounded_up(value: float) -> str:
    """Return a number with two digits that is not below it."""
    unit = 10.0 ** (floor(log10(value)) - 1)
    return f"{ceil(value / unit) * unit:.2g}"


def excess(accuracy: Accuracy | None, rounding: Rounding, bound: float) -> str:
    """Explain why kernels of a rounding exceed a bound; empty if they do not."""
    after = accuracy.after if accuracy else None
    if after is None:
        return f"{rounding.said}: the accuracy is unknown, and the study allows {bound:g}"
    if after.velocity is not None and after.velocity <= bound:
        return ""
    error = "no finite number" if after.velocity is None else f"{after.velocity:.2g}"
    return f"{rounding.said}: error of the velocity after {after.steps} steps {error}; the study allows {bound:g}"
