"""What takes rows through several time steps in one launch: regions of tiles whose steps lie behind one another."""

from __future__ import annotations

from math import lcm

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.families.cpu.wavefront import lag
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.shared.filling import filled, indented
from lbmtune.codegen.cpu.shared.loops import row_name
from lbmtune.codegen.cpu.shared.signatures import parameter_names, sweep_names, sweep_signature
from lbmtune.codegen.cpu.shared.streams import ASKED, Streams, plain, slots_asked
from lbmtune.codegen.passes import BUFFERS, Pass, passes
from lbmtune.codegen.program import PARITY, STEPS, Launch
from lbmtune.codegen.trace import Traced

ENTRY = "sweep"
_DEPTH = 7
"""Blocks around the choice of a row kernel."""


def sweep(case: Case, config: CpuConfig) -> str:
    """The order in which rows take their steps, and the entry that spreads it over threads."""
    across, along = ("z", "y") if case.stencil.dimensions == 2 else ("y", "z")
    lags = dict(zip("yz", lag(config.propagation, case.stencil), strict=True))
    return filled(
        "sweeps",
        arguments=", ".join(sweep_names(case, config)),
        signature=sweep_signature(case, config),
        entry=ENTRY,
        across=across,
        along=along,
        **{f"lag_{axis}": str(rows) for axis, rows in lags.items()},
        **{f"tile_{axis}": str(tile) for axis, tile in (("y", config.tile_y), ("z", config.tile_z))},
        tile_across=str(config.tile_y if across == "y" else config.tile_z),
        tile_along=str(config.tile_y if along == "y" else config.tile_z),
        extents=indented([*_sizes(case, config), f"to_{across} = n{across}"], 1),
        turns=indented(_turns(case, config), _DEPTH),
        most=", ".join(["steps", str(config.steps), *_room(lags)]),
        parallel=str(config.threads > 1),
        threads=str(config.threads),
    ).rstrip()


def sweep_launches(case: Case, config: CpuConfig) -> tuple[tuple[Launch, ...], ...]:
    """Those of one period: the entry again and again until it begins at parity 0 once more."""
    _, *others = sweep_names(case, config)
    launch = Launch(ENTRY, (BUFFERS[0], *others, PARITY, STEPS))
    return ((launch,),) * (lcm(config.propagation.period, config.steps) // config.steps)


def _room(lags: dict[str, int]) -> list[str]:
    """Steps after which what grows into a gap from both of its sides fills the domain."""
    return [f"n{axis} // {2 * rows} + 1" for axis, rows in lags.items() if rows]


def _turns(case: Case, config: CpuConfig) -> list[str]:
    """The choice of the row kernel by the parity of the step."""
    every = passes(config, case.stencil)
    choices = [f"if (first + s) % {len(every)} == {parity}:" for parity in range(len(every) - 1)]
    calls = [f"    {_call(case, config, one)}" for one in every]
    asked = [f"{ASKED} = {_asked(_streams(case, config))}"] if config.prefetch_rows else []
    return [*asked, *(line for pair in zip([*choices, "else:"], calls, strict=True) for line in pair)]


def _call(case: Case, config: CpuConfig, one: Pass) -> str:
    asked = [ASKED] if config.prefetch_rows else []
    return f"{row_name(one)}({', '.join((*parameter_names(case, config, one.phase), *asked))}, y, z)"


def _sizes(case: Case, config: CpuConfig) -> list[str]:
    """What the place of a row follows from."""
    return _streams(case, config).extent_lines() if config.prefetch_rows else []


def _asked(streams: Streams) -> str:
    """The first element of the share of step s in the rows that the first step takes next, and those next to them."""
    config, memory = streams.config, streams.config.memory
    flat = streams.case.stencil.dimensions == 2
    ahead = {"y": f" + {config.tile_y + 1}" if flat else "", "z": "" if flat else f" + {config.tile_z + 1}"}
    y, z = (Traced(f"(row_{axis} + lag_{axis} * s{ahead[axis]})", "//") for axis in "yz")
    share = f"{slots_asked(config, streams.case.stencil.q)} * s * stride"
    rows = (plain(memory.along_y(y, streams.extents)), plain(memory.along_z(z, streams.extents)))
    return " + ".join([share, *rows, str(streams.frame.origin[0])])


def _streams(case: Case, config: CpuConfig) -> Streams:
    return Streams(case, config, config.propagation.phase(case.stencil, 0), ("field", "field"))
