"""The module around the kernels of a configuration: imports, constants, access functions, parameters of kernels."""

from collections.abc import Mapping, Sequence

from lbmtune.catalogue.boundaries.arguments import boundary_scalars, wall_scalars
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, tables
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.passes import POINTER, Pass, passes, pointer_name
from lbmtune.codegen.program import LIST, PARITY, STEPS, Program, Steps
from lbmtune.codegen.skeleton import filled
from lbmtune.codegen.support import support_digest

DOMAIN = ("nx", "ny", "nz")
_INTEGERS = (*DOMAIN, "sites", "nodes", PARITY, STEPS)
_ARRAYS = ("field", "source", "target")
LANES = "lane, with_lane = lanes.lane, lanes.with_lane"
"""Names of the functions that take cells out of vectors."""


def module(
    case: Case,
    config: CpuConfig,
    constants: Constants,
    steps: Sequence[str],
    period: Steps,
    names: Sequence[str],
    support: Sequence[str] = (),
    skeleton: str = "shared/module",
    values: Mapping[str, str] | None = None,
) -> Program:
    """Return the program of a module: its kernels, the support modules beside `simd`, and names of their functions.

    steps: texts of the kernels; names: lines that name access functions, because kernels can use no attributes;
    values: further fields of the skeleton.
    """
    source = filled(
        skeleton,
        title=f"{config.family} {case.flow} {case.lattice} {case.collision}: {config.propagation.title}",
        support=support_digest(*support),
        compute=config.computed.dtype,
        codes=codes(config),
        lanes=config.lanes,
        constants="\n".join(constants.definitions()),
        steps="\n\n\n".join(steps),
        imports=", ".join([*support, "simd"]),
        names="\n".join(names),
        **(values or {}),
    )
    return Program("cpu", case, config, source, (), period, steps=config.fused_steps)


def codes(config: CpuConfig) -> str:
    """Return the argument that names the storage format to access functions if memory holds codes, or ''."""
    return f', "{config.storage}"' if config.stored.codes else ""


def access_names(
    *, streaming: bool = False, grouped: bool = False, ends: bool = True, prefetch: bool = False
) -> list[str]:
    """Return lines that name the access functions of rows.

    streaming: stores are non-temporal; grouped: vectors may cross groups of cells; ends: single elements at the ends
    of rows are accessed; prefetch: cache lines are prefetched.
    """
    names = ["load", "store", *(["stream"] if streaming else [])]
    names += ["load_before", "load_after", "store_before", "store_after"] if grouped else []
    return [
        *(f"{name} = many.{name}" for name in names),
        *(["prefetch = simd.prefetch"] if prefetch else []),
        *(["load_one, store_one = one.load, one.store"] if ends else []),
    ]


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    walls = wall_scalars(case) if phase.collides or phase.wall_term != "none" else ()
    if not phase.collides:
        return walls
    forces = tuple(f"force_{a}" for a in "xyz") if case.forced else ()
    return (*collision(case.collision).parameters, *forces, *walls, *boundary_scalars(case))


def launch_arguments(case: Case, config: CpuConfig, one: Pass, extents: tuple[str, ...] = DOMAIN) -> tuple[str, ...]:
    """Return the names of what a launch of a pass passes. extents: names of the numbers of cells, and a list if any."""
    return (*one.places, *_values(case, config, one.phase, extents))


def parameter_names(case: Case, config: CpuConfig, phase: Phase, extents: tuple[str, ...] = DOMAIN) -> tuple[str, ...]:
    """Return the parameters that take the arguments of a launch."""
    return (*buffer_names(phase), *map(pointer_name, phase.pointers), *_values(case, config, phase, extents))


def buffer_names(phase: Phase) -> tuple[str, ...]:
    """Return the parameters that a pass reads from and writes to."""
    return ("field",) if phase.in_place else ("source", "target")


def _values(case: Case, config: CpuConfig, phase: Phase, extents: tuple[str, ...]) -> tuple[str, ...]:
    """Return flag tables (an index list has the flags of its sites), extents and scalars."""
    words = () if LIST in extents else tables(case, config, phase)
    return (*words, *extents, *_scalars(case, phase))


def wavefront_names(case: Case, config: CpuConfig) -> tuple[str, ...]:
    """Return the arguments of the rows of all parities, which may differ in the flag tables that they read."""
    phases = [one.phase for one in passes(config, case.stencil)]
    words = dict.fromkeys(name for phase in phases for name in tables(case, config, phase))
    return ("field", *words, *DOMAIN, *_scalars(case, phases[0]))


def signature(config: CpuConfig, names: Sequence[str]) -> str:
    """Return the Numba types of parameters, which follow from their names."""
    return ", ".join(_type(config, name) for name in names)


def _type(config: CpuConfig, name: str) -> str:
    if name in _ARRAYS:
        # halves travel as 16-bit integers: Numba has no half on the CPU
        return f"{'uint16' if config.stored.bytes == 2 else config.stored.dtype}[::1]"
    if name in (WORDS, MOVING_WORDS, LIST):
        return "uint32[::1]"
    return "int64" if name in _INTEGERS or name.startswith(POINTER) else config.computed.dtype


def row_name(one: Pass) -> str:
    """Return the name of the row function of a pass."""
    return f"row_{one.entry.removeprefix('step_')}"


def parallel_loop(config: CpuConfig) -> dict[str, str]:
    """Return the fields of a skeleton that spread a loop over threads."""
    parallel = config.threads > 1
    return {"parallel": str(parallel), "range": "simd.prange" if parallel else "range"}
