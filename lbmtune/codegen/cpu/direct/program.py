"""The CPU program of the direct family: each pass of a scheme goes once over all rows of the box."""

from __future__ import annotations

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.direct.loops import faces_name, loops
from lbmtune.codegen.cpu.direct.row_kernel import RowKernel, module_names, support_modules
from lbmtune.codegen.cpu.direct.rows import KEPT
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import module
from lbmtune.codegen.cpu.shared.signatures import DOMAIN, launch_arguments
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import Launch, Program


def render(case: Case, config: CpuConfig) -> Program:
    """Return the program of a legal configuration of the direct family."""
    constants = Constants()
    steps = [_step(case, config, one, constants) for one in passes(config, case.stencil)]
    period = tuple(
        tuple(launch for one in passes_of(config, case.stencil, parity) for launch in _launches(case, config, one))
        for parity in range(config.propagation.period)
    )
    support = support_modules(case, config)
    names = module_names(config, support, streaming=bool(config.streaming_stores))
    return module(case, config, constants, steps, period, names, support)


def _step(case: Case, config: CpuConfig, one: Pass, constants: Constants) -> str:
    """Return the row kernel of a pass and the loop over its rows."""
    positions = (KEPT, "line") if one.phase.blockwise else ("first",) if one.phase.ordered else ()
    kernel = RowKernel(case, config, one, constants, positions, streaming=bool(config.streaming_stores))
    return f"{kernel.text()}\n\n\n{loops(case, config, one, kernel.row)}"


def _launches(case: Case, config: CpuConfig, one: Pass) -> tuple[Launch, ...]:
    """Return the launch of a pass, with the refresh of rings before it and the pass over faces after it."""
    step = Launch(one.entry, launch_arguments(case, config, one))
    rings = (Launch(one.refresh("read"), (*one.buffers, *DOMAIN)),) if one.phase.blockwise else ()
    faces = (Launch(faces_name(one), (*one.buffers, *DOMAIN)),) if one.phase.ordered else ()
    return (*rings, step, *faces)
