"""Title, entries and compiler options, which all CUDA texts have."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS, tables
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.expressions import reals
from lbmtune.codegen.program import FIRST_PLANE, LAST_PLANE, Program, Steps

EXTENTS = ("nx", "ny", "nz")
"""Launch arguments that hold the extents of the domain."""
WORD_PARAMETERS = {WORDS: "words", MOVING_WORDS: "moving_words"}
"""Parameters that hold the tables of words of cells."""


def program(
    case: Case,
    config: CudaConfig,
    source: str,
    period: Steps,
    max_elements: int | None,
    *,
    steps: int = 1,
    prologue: Steps = (),
) -> Program:
    """Return the program of a text, with the options of the CUDA compiler.

    In single precision, reciprocals are approximate to one unit in the last place and denormals are zero. Kernels of
    dependent launches start before the launch that they depend on has ended, and their entries wait for it (`head`).
    """
    if config.launch == "dependent":
        source = f"{fill('shared/programmatic_launch.cu', {})}\n{source}"
        period, prologue = (
            tuple(tuple(replace(launch, mode="dependent") for launch in step) for step in launches)
            for launches in (period, prologue)
        )
    cap = (f"--maxrregcount={config.max_registers}",) if config.max_registers else ()
    # NVRTC 13.0 requires an execution space of the lambdas of the ghost refresh, which have no annotation
    options = ("--std=c++17", "--device-as-default-execution-space", "--ftz=true", "--prec-div=false", *cap)
    return Program(
        "cuda", case, config, source, options, period, steps=steps, prologue=prologue, max_elements=max_elements
    )


def source(file: str, case: Case, config: CudaConfig, regions: Mapping[str, str]) -> str:
    """Return the text of a skeleton, with a comment that names case and configuration."""
    title = f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n"
    return fill(file, {"title": title, **regions}) + "\n"


def boolean(value: bool) -> str:
    """Return the C text of a truth value."""
    return "true" if value else "false"


def bounds(config: CudaConfig) -> str:
    """Return the launch bounds of an entry; a register cap has none, because launch bounds override it."""
    if config.max_registers:
        return ""
    blocks = f", {config.min_blocks}" if config.min_blocks else ""
    return f"__launch_bounds__({prod(config.block)}{blocks}) "


def head(config: CudaConfig, name: str, *taken: str, bound: str = "") -> str:
    """Return the signature and the opening brace of an entry, which may start with the wait for the launch before it.

    taken: its parameters; bound: its launch bounds if they are not those of the configuration.
    """
    brace = "{  begin_early();" if config.launch == "dependent" else "{"
    return f'extern "C" __global__ void {bound or bounds(config)}{name}(\n    {", ".join(taken)})\n{brace}'


def parameters(words: Iterable[str], integers: Iterable[str], scalars: Iterable[str]) -> list[str]:
    """Return the declarations of tables of words and of scalar parameters."""
    tables_ = (f"const Word* __restrict__ {WORD_PARAMETERS[name]}" for name in words)
    return [*tables_, *(f"const int {n}" for n in integers), *reals(scalars)]


def extents(planes: bool) -> tuple[str, ...]:
    """Return the launch arguments that hold the extents of the domain, and the limits of the planes of a launch."""
    return (*EXTENTS, FIRST_PLANE, LAST_PLANE) if planes else EXTENTS


def limits(loop: str, planes: bool) -> dict[str, str]:
    """Return the regions with the limits of planes for a loop; none if launches update the whole domain.

    loop: a region of kernels/cuda/exchange/planes.cu.
    """
    return variants("exchange/planes.cu", {}, inside=loop) if planes else {}


def first_tables(case: Case, config: CudaConfig) -> tuple[str, ...]:
    """Return the names of the tables of words that a kernel reads whose steps are all alike."""
    return tables(case, config, config.propagation.phase(case.stencil, 0))
