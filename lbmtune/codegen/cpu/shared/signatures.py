"""Parameters of the entries and row functions of CPU kernels, and their Numba types."""

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
    """Return the names of the real arguments."""
    walls = wall_scalars(case) if phase.collides or phase.wall_term != "none" else ()
    if not phase.collides:
        return walls
    forces = tuple(f"force_{a}" for a in "xyz") if case.forced else ()
    return (*collision(case.collision).parameters, *forces, *walls, *boundary_scalars(case))


def launch_arguments(case: Case, config: CpuConfig, one: Pass, extents: tuple[str, ...] = DOMAIN) -> tuple[str, ...]:
    """Return the names of what a launch of a pass passes. extents: names of the numbers of cells, and a list if any."""
    return (*one.places, *_tables(case, config, one.phase, extents), *extents, *_scalars(case, one.phase))


def pointer_name(number: int) -> str:
    """Return the parameter of that number among the pointers to slots."""
    return f"pointer_{number}"


def parameter_names(case: Case, config: CpuConfig, phase: Phase, extents: tuple[str, ...] = DOMAIN) -> tuple[str, ...]:
    """Return the parameters that take the arguments of a launch."""
    buffers = ("field",) if phase.in_place else ("source", "target")
    pointers = map(pointer_name, phase.pointers)
    return (*buffers, *pointers, *_tables(case, config, phase, extents), *extents, *_scalars(case, phase))


def signature(case: Case, config: CpuConfig, phase: Phase, extents: tuple[str, ...] = DOMAIN) -> str:
    """Return the Numba types of the parameters."""
    kinds = _arrays(config, 1 if phase.in_place else 2) + ["int64"] * len(phase.pointers)
    kinds += _WORDS * len(_tables(case, config, phase, extents))
    kinds += ["uint32[::1]" if name == LIST else "int64" for name in extents]
    return ", ".join([*kinds, *_reals(case, config, phase)])


def _tables(case: Case, config: CpuConfig, phase: Phase, extents: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the flag tables; an index list has the flags of its sites."""
    return () if LIST in extents else tables(case, config, phase)


def row_name(one: Pass) -> str:
    """Return the name of the row function of a pass."""
    return f"row_{one.entry.removeprefix('step_')}"


def parallel_loop(config: CpuConfig) -> dict[str, str]:
    """Return the fields of a skeleton that spread a loop over threads."""
    parallel = config.threads > 1
    return {"parallel": str(parallel), "range": "simd.prange" if parallel else "range"}


def wavefront_names(case: Case, config: CpuConfig) -> tuple[str, ...]:
    """Return the arguments of the rows of all parities, which may differ in the flag tables that they read."""
    return ("field", *_any_tables(case, config), *DOMAIN, *_scalars(case, _phases(case, config)[0]))


def wavefront_signature(case: Case, config: CpuConfig) -> str:
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
