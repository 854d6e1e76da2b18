"""What all CUDA texts have in common: the title, entries, the compiler's options and the words of cells."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, tables
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case

EXTENTS = ("nx", "ny", "nz")
"""Launch arguments that hold the extents of the domain."""
WORD_PARAMETERS = {WORDS: "words", MOVING_WORDS: "moving_words"}
"""Parameters that hold the tables of words of cells."""
_REAL = {"fp32": "float", "fp64": "double"}


def real(precision: str) -> str:
    """Return the C type of a precision of the language ("fp32" or "fp64")."""
    return _REAL[precision]


def boolean(value: bool) -> str:
    """Return the C text of a truth value."""
    return "true" if value else "false"


def title(case: Case, config: CudaConfig) -> str:
    """Return the comment that names case and configuration."""
    return f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n"


def compiler_options(config: CudaConfig) -> tuple[str, ...]:
    """Return the options of the CUDA compiler, in order.

    In single precision, reciprocals are approximate to one unit in the last place and denormals are zero.
    """
    cap = (f"--maxrregcount={config.max_registers}",) if config.max_registers else ()
    # NVRTC 13.0 requires an execution space of the lambdas of the ghost refresh, which have no annotation
    return ("--std=c++17", "--device-as-default-execution-space", "--ftz=true", "--prec-div=false", *cap)


def bounds(config: CudaConfig) -> str:
    """Return the launch bounds of an entry; a register cap has none, because launch bounds override it."""
    if config.max_registers:
        return ""
    blocks = f", {config.min_blocks}" if config.min_blocks else ""
    return f"__launch_bounds__({prod(config.block)}{blocks}) "


def entry_head(bound: str, name: str, parameters: str, *, dependent: bool = False) -> str:
    """Return the signature and the opening brace of an entry.

    dependent: whether the entry starts with the wait of a programmatic dependent launch.
    """
    brace = "{  begin_early();" if dependent else "{"
    return f'extern "C" __global__ void {bound}{name}(\n    {parameters})\n{brace}'


def parameters(integers: Iterable[str], scalars: Iterable[str]) -> list[str]:
    """Return the declarations of scalar parameters of an entry."""
    return [*(f"const int {n}" for n in integers), *(f"const Real {n}" for n in scalars)]


def first_tables(case: Case, config: CudaConfig) -> tuple[str, ...]:
    """Return the names of the tables of words that a kernel reads whose steps are all alike."""
    return tables(case, config, config.propagation.phase(case.stencil, 0))


def word_parameters(names: Iterable[str]) -> list[str]:
    """Return the declarations of the parameters that hold tables of words."""
    return [f"const Word* __restrict__ {WORD_PARAMETERS[name]}" for name in names]
