"""The CPU program of the moments wavefront: rows of moments go through the steps of a launch, one behind the other.

See `catalogue.families.cpu.moments_wavefront` for the order of rows and the rings that hold what their cells send.
"""

from lbmtune.catalogue.families.cpu.moments_wavefront import (
    MARGIN,
    MomentsWavefront,
    reach,
    stage_values,
    thread_values,
    width,
)
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.moments_wavefront import walls
from lbmtune.codegen.cpu.moments_wavefront.cell import Cell
from lbmtune.codegen.cpu.moments_wavefront.rows import Rows
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import (
    access_names,
    launch_arguments,
    module,
    parallel_loop,
    parameter_names,
    signature,
)
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import RINGS, Launch, Program
from lbmtune.codegen.skeleton import filled, indented


def render(case: Case, config: MomentsWavefront) -> Program:
    """Return the program of a legal configuration of the moments wavefront."""
    constants = Constants()
    (one,) = passes(config, case.stencil)
    period = ((Launch(one.entry, (*launch_arguments(case, config, one), RINGS)),),)
    access = access_names(streaming=bool(config.streaming_stores), prefetch=bool(config.prefetch_rows))
    names, support = [*access, *walls.names(case, config)], ["walls"] if case.geometry else []
    return module(case, config, constants, [_functions(case, config, one, constants)], period, names, support)


def _functions(case: Case, config: MomentsWavefront, one: Pass, constants: Constants) -> str:
    rows = Rows(case, config, Cell(case, constants))
    parameters, across, halo = parameter_names(case, config, one.phase), reach(case.stencil), 2 * config.steps
    cut = [walls.returned(rows, constants, last=last) for last in (False, True)]
    return filled(
        "moments_wavefront/wavefront",
        entry=one.entry,
        arguments=", ".join(parameters),
        signature=f"{signature(config, parameters)}, {config.computed.dtype}[::1]",
        lanes=config.lanes,
        across="y" if across else "z",
        along="z" if across else "y",
        tile_x=config.tile_x,
        tile_along=config.tile_z if across else config.tile_y,
        rows=f"ny + {halo}" if across else "1",
        width=width(case.stencil, config),
        halo=halo,
        due="(first + row) // 2, plane // 2" if across else "plane // 2",
        place_across=f"first + row - s - {config.steps}" if across else "0",
        next=", next_y, next_z" if config.prefetch_rows else "",
        ahead=indented(_ahead(across) if config.prefetch_rows else [], 6),
        steps=config.steps,
        threads=config.threads,
        margin=MARGIN,
        stage=stage_values(case, config),
        values=thread_values(case, config),
        **{name: indented(lines, 1) for name, lines in rows.before(*cut).items()},
        **{name: indented(lines, 2) for name, lines in rows.bodies().items()},
        **parallel_loop(config),
        **walls.parts(rows, constants),
    ).rstrip()


def _ahead(across: int) -> list[str]:
    """The row that is taken next: the next one of the plane, or the first one of the next plane."""
    over, on = ("y", "z") if across else ("z", "y")
    return [
        f"next_{over}, next_{on} = ({over} + 1, {on}) if row < last else ({over} - row, {on} + 1)",
        "next_y, next_z = next_y % ny, next_z % nz",
    ]
