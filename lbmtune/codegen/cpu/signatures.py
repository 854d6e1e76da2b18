"""What the entries and row functions of CPU kernels take."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.facing import boundary_scalars
from lbmtune.catalogue.flagging import tables
from lbmtune.catalogue.scheme import Phase
from lbmtune.codegen.passes import Pass
from lbmtune.codegen.program import LIST

DOMAIN = ("nx", "ny", "nz")


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    """Names of the real arguments."""
    walls = tuple(f"wall_{a}" for a in "xyz") if case.moving and (phase.collides or phase.wall_term != "none") else ()
    if not phase.collides:
        return walls
    forces = tuple(f"force_{a}" for a in "xyz") if case.forced else ()
    return (*collision(case.collision).parameters, *forces, *walls, *boundary_scalars(case))


def launch_arguments(case: Case, config: CpuConfig, one: Pass) -> tuple[str, ...]:
    """What a launch passes."""
    return (*one.buffers, *tables(case, config, one.phase), *_extents(config), *_scalars(case, one.phase))


def _extents(config: CpuConfig) -> tuple[str, ...]:
    return (LIST, "sites", "nodes") if config.indirect else DOMAIN


def parameter_names(case: Case, config: CpuConfig, phase: Phase) -> tuple[str, ...]:
    """The same arguments by the names that the kernel gives them."""
    buffers = ("field",) if phase.in_place else ("source", "target")
    return (*buffers, *tables(case, config, phase), *_extents(config), *_scalars(case, phase))


def signature(case: Case, config: CpuConfig, phase: Phase) -> str:
    """Their Numba types."""
    arrays = [f"{element(config)}[::1]"] * (1 if phase.in_place else 2)
    arrays += ["uint32[::1]"] * len(tables(case, config, phase))
    kinds = [*arrays, *(["uint32[::1]", "int64", "int64"] if config.indirect else ["int64"] * 3)]
    return ", ".join([*kinds, *[config.computed.dtype] * len(_scalars(case, phase))])


def element(config: CpuConfig) -> str:
    """The Numba type of what is stored."""
    # halves travel as 16-bit integers: Numba has no half on the CPU
    return "uint16" if config.stored.bytes == 2 else config.stored.dtype
