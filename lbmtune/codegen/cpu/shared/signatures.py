"""What the entries and row functions of CPU kernels take."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.arguments import boundary_scalars, wall_scalars
from lbmtune.catalogue.boundaries.cell_flags import tables
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import LIST

DOMAIN = ("nx", "ny", "nz")
_WORDS = ["uint32[::1]"]


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    """Names of the real arguments."""
    walls = wall_scalars(case) if phase.collides or phase.wall_term != "none" else ()
    if not phase.collides:
        return walls
    forces = tuple(f"force_{a}" for a in "xyz") if case.forced else ()
    return (*collision(case.collision).parameters, *forces, *walls, *boundary_scalars(case))


def launch_arguments(case: Case, config: CpuConfig, one: Pass) -> tuple[str, ...]:
    """What a launch passes."""
    return (*one.places, *tables(case, config, one.phase), *_extents(config), *_scalars(case, one.phase))


def _extents(config: CpuConfig) -> tuple[str, ...]:
    return (LIST, "sites", "nodes") if config.indirect else DOMAIN


def pointer_name(number: int) -> str:
    """The parameter of that number among the pointers to slots."""
    return f"pointer_{number}"


def parameter_names(case: Case, config: CpuConfig, phase: Phase) -> tuple[str, ...]:
    """The same arguments by the names that the kernel gives them."""
    buffers = ("field",) if phase.in_place else ("source", "target")
    pointers = map(pointer_name, phase.pointers)
    return (*buffers, *pointers, *tables(case, config, phase), *_extents(config), *_scalars(case, phase))


def signature(case: Case, config: CpuConfig, phase: Phase) -> str:
    """Their Numba types."""
    kinds = _arrays(config, 1 if phase.in_place else 2) + ["int64"] * len(phase.pointers)
    kinds += _WORDS * len(tables(case, config, phase))
    kinds += ["uint32[::1]", "int64", "int64"] if config.indirect else ["int64"] * 3
    return ", ".join([*kinds, *_reals(case, config, phase)])


def sweep_names(case: Case, config: CpuConfig) -> tuple[str, ...]:
    """What any row of any step takes, but for its place: parities may differ in the tables that they read."""
    return ("field", *_any_tables(case, config), *DOMAIN, *_scalars(case, _phases(case, config)[0]))


def sweep_signature(case: Case, config: CpuConfig) -> str:
    """The Numba types of those, and of the parity of the first step and the number of steps."""
    arrays = _arrays(config, 1) + _WORDS * len(_any_tables(case, config))
    return ", ".join([*arrays, *["int64"] * 3, *_reals(case, config, _phases(case, config)[0]), "int64", "int64"])


def _any_tables(case: Case, config: CpuConfig) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for phase in _phases(case, config) for name in tables(case, config, phase)))


def _phases(case: Case, config: CpuConfig) -> list[Phase]:
    return [one.phase for one in passes(config, case.stencil)]


def _arrays(config: CpuConfig, lattices: int) -> list[str]:
    return [f"{element(config)}[::1]"] * lattices


def _reals(case: Case, config: CpuConfig, phase: Phase) -> list[str]:
    return [config.computed.dtype] * len(_scalars(case, phase))


def element(config: CpuConfig) -> str:
    """The Numba type of what is stored."""
    # halves travel as 16-bit integers: Numba has no half on the CPU
    return "uint16" if config.stored.bytes == 2 else config.stored.dtype
