"""Rules of decompositions: the first reason why a configuration or a cut is not supported, or None."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.decomposition.boxes import Cells
from lbmtune.decomposition.cuts import AXES, MOST_PARTS, Cut, Grid
from lbmtune.decomposition.parts import Decomposition, Part, case_of, crossed, decomposed
from lbmtune.errors import InputError

_ENDLESS = 2**63
"""The whole domain need not fit into the memory of one device."""
Rule = Callable[[Case, KernelConfig], str | None]


def refusal(case: Case, config: KernelConfig, cut: Cut, limits: Limits, depth: int | None = None) -> str | None:
    """Return why a configuration cannot run on the parts of a cut, or None. limits: those of each device.

    depth: layers of the halo; None: as few as serve.
    """
    layers = config.fused_steps if depth is None else depth
    if reason := kernel_refusal(case, config) or _depth(config, layers) or _planes(case, cut):
        return reason
    try:
        found = decomposed(case, config, cut, layers)
    except InputError as error:
        return str(error)
    return _thin(found) or _refused_part(found, limits)


def kernel_refusal(case: Case, config: KernelConfig) -> str | None:
    """Return why a configuration cannot run on parts of the case's domain, however it is cut, or None."""
    return next((reason for rule in _OF_KERNELS if (reason := rule(case, config))), None)


def _state(case: Case, config: KernelConfig) -> str | None:
    if not config.state_place:
        return None
    return (
        f"family={config.family} is not supported for several parts (use direct, column, sparse or temporal-blocking): "
        f"its state lies {config.state_place}"
    )


def _passes(case: Case, config: KernelConfig) -> str | None:
    scheme, lattice = config.propagation, case.stencil
    what = f"scheme={config.scheme} is not supported for several parts (use pull, push, aa or an esoteric scheme)"
    if any(phase.ordered for phase in scheme.phases(lattice)):
        return f"{what}: its cells are updated in the order of the whole domain"
    if scheme.moves:
        return f"{what}: parts exchange after a step, and it has passes within one"
    return None


def _several_steps(case: Case, config: KernelConfig) -> str | None:
    if config.fused_steps == 1 or crossed(config) == "cells":
        return None
    return (
        f"steps={config.fused_steps} of family {config.family} is not supported for several parts (use 1): "
        "the halo of a scheme that moves populations has one layer"
    )


def _walls(case: Case, config: KernelConfig) -> str | None:
    if case.interpolates:
        return f"walls={case.walls} is not supported for several parts (use half-way): their pass reads beyond the halo"
    if case.patches:
        return f"a {case.patches[0].kind} patch is not supported for several parts: it is a share of a whole face"
    return None


_OF_KERNELS: tuple[Rule, ...] = (_state, _passes, _several_steps, _walls)


def _depth(config: KernelConfig, depth: int) -> str | None:
    steps = config.fused_steps
    if crossed(config) == "links":
        return None if depth == 1 else f"depth={depth} is not supported for scheme={config.scheme} (use 1)"
    if depth < 1 or depth % steps:
        return f"depth={depth} is not supported for steps={steps} (use a multiple of {steps}): launches are whole"
    return None


def _planes(case: Case, cut: Cut) -> str | None:
    what = f"cut={cut} is not supported"
    if cut.parts > MOST_PARTS:
        return f"{what} (use up to {MOST_PARTS:,} parts): their faces are listed pair by pair"
    for axis, cells in enumerate(case.domain):
        if isinstance(cut, Grid) and cut.along[axis] > cells:
            return (
                f"{what} for domain {extents(case.domain)} (use up to {cells} along {AXES[axis]}): "
                "it has more parts than planes"
            )
    return None


def _thin(found: Decomposition) -> str | None:
    for part in found.parts:
        for axis, cells in enumerate(part.box.extents):
            if not part.spans[axis] and cells < found.depth:
                return (
                    f"cut={found.cut} is not supported for a halo of {found.depth} layers (use fewer parts along "
                    f"{AXES[axis]}): part {part.number} has {cells} planes across it, which is too thin a slab"
                )
    return None


def _refused_part(found: Decomposition, limits: Limits) -> str | None:
    """Return why a kernel is illegal on the domain of a part; parts of equal extents are judged by the first."""
    first: dict[Cells, Part] = {}
    for part in found.parts:
        first.setdefault(part.stored.extents, part)
    case, config = found.case, found.config
    for cells, part in first.items():
        if reason := broken(case_of(case, part), config, limits):
            of_all = broken(case, config, replace(limits, memory_bytes=_ENDLESS))  # as it is known from one device
            return of_all or f"cut={found.cut}: part {part.number} with its halo has {extents(cells)} cells: {reason}"
    return None
