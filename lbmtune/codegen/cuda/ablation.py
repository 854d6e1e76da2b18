"""Kernels without their reads or their writes, which measure the cost of the other parts."""

from lbmtune.catalogue.families import module_of
from lbmtune.codegen.cuda.shared.ablation import Parts
from lbmtune.codegen.passes import REFRESH
from lbmtune.codegen.program import Program

_FAMILIES = ("direct", "column", "sparse", "temporal-blocking")
"""Those whose module prints a kernel without some of its parts."""


def can_be_ablated(program: Program) -> bool:
    """Return whether parts of a program can be left out: it has one kernel per time step or launch."""
    one_kernel = not any(entry.startswith(REFRESH) for entry in program.entries)
    return one_kernel and program.target == "cuda" and program.config.family in _FAMILIES


def ablated(program: Program, *, reads: bool, writes: bool) -> Program:
    """Return the program without its reads, its writes, or both."""
    found: Program = module_of("lbmtune.codegen.cuda", program.config).render(
        program.case, program.config, Parts(reads, writes)
    )
    return found
