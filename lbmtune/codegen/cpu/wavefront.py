"""The CPU program of the wavefront family: rows go through several steps in place, each some rows behind the last."""

from math import ceil, lcm

from lbmtune.catalogue.families.cpu.wavefront import Wavefront, lag
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.direct.row_kernel import RowKernel, module_names, support_modules
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import module, parameter_names, row_name, signature, wavefront_names
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.passes import BUFFERS, passes
from lbmtune.codegen.program import PARITY, STEPS, Launch, Program
from lbmtune.codegen.skeleton import block, filled, indented
from lbmtune.codegen.trace import Traced, plain

ENTRY = "sweep"
_ASKED = "asked"
"""Name of the first element of the rows that a step prefetches."""
_DEPTH = 7
"""Blocks around the choice of a row kernel."""


def render(case: Case, config: Wavefront) -> Program:
    """Return the program of a legal configuration of the wavefront family."""
    constants = Constants()
    positions = (_ASKED,) if config.prefetch_rows else ()
    slots = range(_share(case, config) if config.prefetch_rows else 0)
    prefetches = tuple(f"prefetch(field, {_ASKED} + {slot} * stride + x)" for slot in slots)
    rows = [
        RowKernel(case, config, one, constants, positions, prefetches).text() for one in passes(config, case.stencil)
    ]
    _, *others = wavefront_names(case, config)
    launch = Launch(ENTRY, (BUFFERS[0], *others, PARITY, STEPS))
    # until the entry begins at parity 0 again
    period = ((launch,),) * (lcm(config.propagation.period, config.steps) // config.steps)
    support = support_modules(case, config)
    names = module_names(config, support, prefetch_rows=bool(config.prefetch_rows))
    return module(case, config, constants, [*rows, loops(case, config)], period, names, support)


def loops(case: Case, config: Wavefront) -> str:
    """Return the loops over tiles, steps and rows, and the entry that spreads them over threads."""
    names = wavefront_names(case, config)
    across, along = ("z", "y") if case.stencil.dimensions == 2 else ("y", "z")
    lags = dict(zip("yz", lag(config.propagation, case.stencil), strict=True))
    tiles = {"y": str(config.tile_y), "z": str(config.tile_z)}
    sizes = _first_streams(case, config).extent_lines() if config.prefetch_rows else []
    return filled(
        "wavefront/wavefront",
        arguments=", ".join(names),
        signature=signature(config, (*names, PARITY, STEPS)),
        entry=ENTRY,
        across=across,
        along=along,
        **{f"lag_{axis}": str(rows) for axis, rows in lags.items()},
        **{f"tile_{axis}": tile for axis, tile in tiles.items()},
        tile_across=tiles[across],
        tile_along=tiles[along],
        extents=indented([*sizes, f"to_{across} = n{across}"], 1),
        turns=indented(_choice(case, config), _DEPTH),
        # regions that grow into a gap from both sides fill the domain after the last of these
        most=", ".join(["steps", str(config.steps), *(f"n{a} // {2 * rows} + 1" for a, rows in lags.items() if rows)]),
        parallel=str(config.threads > 1),
        threads=str(config.threads),
    ).rstrip()


def _choice(case: Case, config: Wavefront) -> list[str]:
    every = passes(config, case.stencil)
    tests = [*(f"if (first + s) % {len(every)} == {parity}:" for parity in range(len(every) - 1)), "else:"]
    positions = f"{f', {_ASKED}' if config.prefetch_rows else ''}, y, z"
    calls = [f"{row_name(one)}({', '.join(parameter_names(case, config, one.phase))}{positions})" for one in every]
    asked = [f"{_ASKED} = {_first_element(config, _first_streams(case, config))}"] if config.prefetch_rows else []
    return [*asked, *(line for test, call in zip(tests, calls, strict=True) for line in block(test, [call]))]


def _share(case: Case, config: Wavefront) -> int:
    """Return the slots whose rows a step prefetches: all steps together prefetch what the tile takes next."""
    return ceil(case.stencil.q / config.steps)


def _first_element(config: Wavefront, streams: Streams) -> str:
    """Return the first element of the share of step s in the rows that the first step takes next."""
    memory = config.memory
    flat = streams.case.stencil.dimensions == 2
    ahead = {"y": f" + {config.tile_y + 1}" if flat else "", "z": "" if flat else f" + {config.tile_z + 1}"}
    y, z = (Traced(f"(row_{axis} + lag_{axis} * s{ahead[axis]})", "//") for axis in "yz")
    share = f"{_share(streams.case, config)} * s * stride"
    rows = (plain(memory.along_y(y, streams.extents)), plain(memory.along_z(z, streams.extents)))
    return " + ".join([share, *rows, str(streams.frame.origin[0])])


def _first_streams(case: Case, config: Wavefront) -> Streams:
    return Streams(case, config, config.propagation.phase(case.stencil, 0), ("field", "field"))
