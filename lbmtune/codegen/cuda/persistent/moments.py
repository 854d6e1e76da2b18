"""The CUDA program of a persistent kernel that keeps moments on chip."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.persistent import Persistent, planes_together, shared_bytes
from lbmtune.catalogue.moments.basis import orders, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.persistent import walls
from lbmtune.codegen.cuda.shared import entry, layout, moment_links, moments
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import stored_format
from lbmtune.codegen.moment_stages import Stage, Sums
from lbmtune.codegen.program import BARRIER, SENT_SUMS, STEPS, Launch, Program
from lbmtune.lattice import Lattice

_FILE, _SYNC = "persistent/moments.cu", "persistent/grid_barrier.cu"


def render(case: Case, config: Persistent) -> Program:
    """Return the program of a legal configuration: one launch for any number of time steps."""
    launch = Launch(
        "step_0",
        ("f0", "f1", BARRIER, SENT_SUMS, *entry.first_tables(case, config), STEPS, *entry.EXTENTS, *_scalars(case)),
        block=config.block,
        covers=config.block_cells(case.stencil),
        shared_bytes=shared_bytes(case.stencil, config),
        mode="cooperative",
    )
    source, longest = _source(case, config), layout.max_elements(case, config)
    return entry.program(case, config, source, ((launch,),), longest)


def _source(case: Case, config: Persistent) -> str:
    walled = cuts(case)
    inner = {
        "signature": _signature(case, config),
        "relax": f"                    relax({', '.join(('m[r][v]', *_relaxation(case)))});",
        **(walls.entry_regions(case, config) if walled else {}),
        **variants(_SYNC, {}, inside=config.grid_sync),
    }
    regions = {
        "title": entry.title(case, config),
        "constants": _constants(case, config),
        "storage": stored_format(config, 1),
        "layout": layout.functions(case, config),
        "stage": moments.functions(case.stencil, case.forced, False, case.relaxes) + "\n" + entering(case.stencil),
        "walls": walls.functions(case, config) if walled else "",
        "barrier": fill(_SYNC, {"all": "", "neighbours": ""}),
        "entry": fill(_FILE, inner, inside="entry"),
    }
    return fill(_FILE, regions) + "\n"


def _relaxation(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of the relaxation."""
    return moments.scalars(case.stencil, case.forced, case.relaxes)


def _scalars(case: Case) -> tuple[str, ...]:
    return (*_relaxation(case), *moment_links.scalars(case))


def _constants(case: Case, config: Persistent) -> str:
    lanes, seats, _ = config.block
    return "\n".join(
        (
            f"typedef {entry.real(config.compute)} Real;",
            f"typedef {layout.index_type(case, config)} Index;",
            "constexpr int CELLS = 1;",
            f"constexpr int BLOCK_X = {lanes}, BLOCK_Y = {seats};",
            f"constexpr int WIDE = {config.cells_per_thread}, ROWS = {config.rows}, COLUMN = {config.tile_planes};",
            f"constexpr bool HOLDS = {entry.boolean(bool(config.register_planes))};",
            f"constexpr int TOGETHER = {planes_together(config)};",
            f"constexpr bool FLAT = {entry.boolean(case.stencil.dimensions == 2)};",
            f"constexpr Real unit = {config.unit:.0f};",
            moments.constants(case.stencil),
            _way(case.stencil),
        )
    )


def _way(lattice: Lattice) -> str:
    """Return the function of c_z of each sum that is sent along y; rows are ordered by it."""
    sums = Sums(upright(lattice)).along_y(1)
    falling, level = (sum(row[1] <= c_z for row, _ in sums) for c_z in (-1, 0))
    found = f"sum < {falling} ? -1 : sum < {level} ? 0 : 1"
    return f"__device__ __forceinline__ constexpr int way(const int sum) {{ return {found}; }}"


def entering(lattice: Lattice) -> str:
    """Return the functions that add sums of other tiles to moments, and those at the ends of a tile."""
    stage = Stage(Sums(upright(lattice)), moments.InC())
    sides = "Real (&m)[MOMENTS], const Real (&sums)[ACROSS]"
    layers = "Real (&m)[MOMENTS], const Real (&sums)[PENDING]"
    return "\n".join(
        (
            moments.function(f"enter_up({sides})", _entering(stage, 1)),
            moments.function(f"enter_down({sides})", _entering(stage, -1)),
            moments.function(f"rise({layers})", _crossing(stage, 1)),
            moments.function(f"fall({layers})", _crossing(stage, -1)),
            moments.function("fallen(const Real (&m)[MOMENTS], Real (&sums)[PENDING])", _fallen(stage)),
            moments.function("finish(Real (&m)[MOMENTS], const Real (&current)[CURRENT])", _finish(stage)),
        )
    )


def _entering(stage: Stage, c_y: int) -> Iterator[str]:
    """Yield what rows add that move along y: for each power of c_x, the sums over c_z with its powers."""
    values = {one: _times(stage.sums.factor(one[0]), f"sums[{k}]") for k, one in enumerate(stage.sums.along_y(c_y))}
    for power in range(3):
        rising, level, falling = (values.get(((c_y, c_z), power)) for c_z in (1, 0, -1))
        found = {0: level, 1: None, 2: None}
        if rising and falling:
            yield f"const Real once_{power} = {rising} - {falling}, twice_{power} = {rising} + {falling};"
            found = {1: f"once_{power}", 2: f"twice_{power}"}
            yield f"const Real all_{power} = {' + '.join(filter(None, (f'twice_{power}', level)))};"
            found[0] = f"all_{power}"
        for n in orders(stage.lattice):
            if n[0] == power and (value := found[n[2]]):
                yield f"{stage.moment(n)} {'-' if c_y ** n[1] < 0 else '+'}= {value};"


def _times(factor: int, value: str) -> str:
    return value if factor == 1 else f"{factor} * {value}"


def _crossing(stage: Stage, c_z: int) -> Iterator[str]:
    """Yield what is added that moves along z."""
    for k, part in enumerate(stage.sums.parts[c_z]):
        for n in orders(stage.lattice):
            if n[:2] == part:
                yield f"{stage.moment(n)} {'-' if c_z ** n[2] < 0 else '+'}= sums[{k}];"


def _fallen(stage: Stage) -> Iterator[str]:
    """Yield what moves down from the first plane, which is all that the plane below has received."""
    for k, part in enumerate(stage.sums.parts[-1]):
        yield f"sums[{k}] = {stage.moment((*part, 0))};"


def _finish(stage: Stage) -> Iterator[str]:
    """Yield the moments of the last plane, to which nothing moves down within the tile."""
    for n in orders(stage.lattice):
        yield f"{stage.moment(n)} = current[{stage.sums.waiting(n)}];"


def _signature(case: Case, config: Persistent) -> str:
    buffers = f"Stored* source, Stored* target, unsigned* {BARRIER}, Real* {SENT_SUMS}"
    words, integers = entry.first_tables(case, config), (STEPS, *entry.EXTENTS)
    taken = ", ".join((buffers, *entry.parameters(words, integers, _scalars(case))))
    return entry.head(entry.bounds(config), "step_0", taken)
