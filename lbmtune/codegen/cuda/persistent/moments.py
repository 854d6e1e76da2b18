"""Parts of persistent kernels that keep moments on chip, as C text."""

from __future__ import annotations

from collections.abc import Iterator

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.persistent import Persistent, planes_together
from lbmtune.catalogue.moments.basis import orders, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.persistent import walls
from lbmtune.codegen.cuda.shared import entry, moments
from lbmtune.codegen.cuda.shared.expressions import function
from lbmtune.codegen.moment_stages import Stage, Sums, times
from lbmtune.codegen.program import SENT_SUMS
from lbmtune.lattice import Lattice

FILE, BUFFERS = "persistent/moments.cu", {SENT_SUMS: f"Real* {SENT_SUMS}"}
"""The skeleton, and the parameters of buffers that kernels of populations do not have."""


def entry_regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the entry."""
    taken = ", ".join(("m[r][v]", *moments.case_scalars(case)))
    return {
        "relax": f"                    relax({taken});",
        **(walls.entry_regions(case, config) if cuts(case) else {}),
    }


def regions(case: Case, config: Persistent) -> dict[str, str]:
    """Return the regions of the functions that the entry calls."""
    stage = moments.functions(case.stencil, case.forced, relaxes=case.relaxes)
    return {
        "stage": f"{stage}\n{entering(case.stencil)}",
        "walls": walls.functions(case, config) if cuts(case) else "",
    }


def scalars(case: Case, _config: Persistent) -> tuple[str, ...]:
    """Return the launch arguments of relaxation and walls."""
    return moments.all_scalars(case)


def constants(case: Case, config: Persistent) -> tuple[str, ...]:
    """Return the constants of tiles of moments."""
    lanes, seats, _ = config.block
    return (
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


def _way(lattice: Lattice) -> str:
    """Return the function of c_z of each sum that is sent along y; rows are ordered by it."""
    sums = Sums(upright(lattice)).along_y(1)
    falling, level = (sum(row[1] <= c_z for row, _ in sums) for c_z in (-1, 0))
    found = f"sum < {falling} ? -1 : sum < {level} ? 0 : 1"
    return f"__device__ __forceinline__ constexpr int way(const int sum) {{ return {found}; }}"


def entering(lattice: Lattice) -> str:
    """Return the functions that add sums of other tiles to moments, and those at the ends of a tile."""
    stage = Stage(Sums(upright(lattice)), moments.C_SYNTAX)
    sums, every = stage.sums, orders(stage.lattice)
    # what moves down from the first plane is all that the plane below has received; to the last plane nothing does
    fallen = (f"sums[{k}] = {stage.moment((*part, 0))};" for k, part in enumerate(sums.parts[-1]))
    finish = (f"{stage.moment(n)} = current[{sums.waiting(n)}];" for n in every)
    functions = {
        "enter_up(Real (&m)[MOMENTS], const Real (&sums)[ACROSS])": _entering(stage, 1),
        "enter_down(Real (&m)[MOMENTS], const Real (&sums)[ACROSS])": _entering(stage, -1),
        "rise(Real (&m)[MOMENTS], const Real (&sums)[PENDING])": _crossing(stage, 1),
        "fall(Real (&m)[MOMENTS], const Real (&sums)[PENDING])": _crossing(stage, -1),
        "fallen(const Real (&m)[MOMENTS], Real (&sums)[PENDING])": fallen,
        "finish(Real (&m)[MOMENTS], const Real (&current)[CURRENT])": finish,
    }
    return "\n".join(function(head, lines) for head, lines in functions.items())


def _entering(stage: Stage, c_y: int) -> Iterator[str]:
    """Yield what rows add that move along y: for each power of c_x, the sums over c_z with its powers."""
    values = {one: times(stage.sums.factor(one[0]), f"sums[{k}]") for k, one in enumerate(stage.sums.along_y(c_y))}
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


def _crossing(stage: Stage, c_z: int) -> Iterator[str]:
    """Yield what is added that moves along z."""
    for k, part in enumerate(stage.sums.parts[c_z]):
        for n in orders(stage.lattice):
            if n[:2] == part:
                yield f"{stage.moment(n)} {'-' if c_z ** n[2] < 0 else '+'}= sums[{k}];"
