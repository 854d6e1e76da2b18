"""Accuracy within a study: of each kind of kernel that rounds alike, and what a bound leaves of a space."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.errors import InputError
from lbmtune.records import Accuracy
from lbmtune.search.space import Space

Accurate = Callable[[KernelConfig], Accuracy | None]
Kind = tuple[str, str, str, int]
"""What a cell keeps and where, in which formats it is stored and computed, and the steps of a launch."""


def kind_of(config: KernelConfig) -> Kind:
    """What of a configuration its rounding depends on, but for the order of sums."""
    return kept_where(config), config.storage, config.compute, config.fused_steps


def kept_where(config: KernelConfig) -> str:
    """What a cell keeps, in words, and where, if that is not in arrays of all cells alone: it rounds elsewhere then."""
    kept = config.kept.name
    if not isinstance(config, CudaConfig):
        return kept
    return f"{kept} on chip" if config.resident else f"{kept} by the faces of tiles" if config.by_faces else kept


def within(space: Space, most: float, accuracy: Accurate) -> Space:
    """The configurations whose kind stays within a bound; the others are counted as illegal, with the reason.

    most: relative L2 error of the velocity after many steps. Raises InputError where nothing stays.
    """
    kinds = {kind_of(config): config for config in reversed(space.configs)}
    reasons = {kind: beyond(accuracy(config), kind, most) for kind, config in kinds.items()}
    configs = tuple(config for config in space.configs if not reasons[kind_of(config)])
    if not configs:
        raise InputError(
            f"no configuration is accurate enough: {next(iter(reasons.values()))}; allow more or change storage."
        )
    lost = {
        reason: sum(kind_of(config) == kind for config in space.configs) for kind, reason in reasons.items() if reason
    }
    return replace(space, configs=configs, illegal={**space.illegal, **lost})


def beyond(found: Accuracy | None, kind: Kind, most: float) -> str:
    """Why a kind of kernel is not accurate enough, in a sentence; empty where it is."""
    kept, storage, compute, steps = kind
    what = f"{kept} stored as {storage}, computed in {compute}, {steps} step{'s' if steps > 1 else ''} per launch"
    if found is None or found.after is None:
        return f"{what}: the accuracy is not known, and the study allows {most:g}"
    if found.after.velocity is not None and found.after.velocity <= most:
        return ""
    error = "no finite number" if found.after.velocity is None else f"{found.after.velocity:.2g}"
    return f"{what}: error of the velocity after {found.after.steps} steps {error}; the study allows {most:g}"
