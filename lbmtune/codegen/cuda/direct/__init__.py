"""The CUDA program of one time step of a box, with a cell or a vector of cells per thread."""

from dataclasses import replace

from lbmtune.catalogue.boundaries.cell_flags import by_words
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cuda.direct import flags, macroscopics
from lbmtune.codegen.cuda.shared import access, box, physics
from lbmtune.codegen.cuda.shared.ablation import WHOLE, Parts, reading, writing
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import Program

_BARRIER = "\n    __syncthreads();  // the whole block has read"
ABLATABLE = True
"""Parts of its kernels can be left out."""
TAKES_PLANES = True
"""Launches of its kernels can take the planes that they update."""


def render(case: Case, config: CudaConfig, parts: Parts = WHOLE, *, planes: bool = False) -> Program:
    """Return the program of a legal configuration: one entry per parity, and refreshes of a ghost layer."""
    program = box.program(case, config, _entries(case, config, parts, planes), planes=planes)
    if config.macroscopics != "never":
        storing = macroscopics.with_macroscopics(program, parts, planes=planes)
        program = replace(storing, period=storing.with_macroscopics)
    return program


def _entries(case: Case, config: CudaConfig, parts: Parts, planes: bool) -> str:
    texts = [_entry(case, config, one, parts, planes) for one in passes(config, case.stencil)]
    if _skips(case, config):
        pairs = "\n".join(f"    exchange({i}, {j});" for i, j in case.stencil.pairs)
        texts.insert(0, fill("direct/implicit_walls.cu", {"pairs": pairs}))
    if not config.stored.shifted:
        texts.insert(0, physics.shift_functions(case.lattice))
    if words_of(case, config).walls:
        texts.insert(0, fill("shared/moving_walls.cu", {}))
    if not by_words(case, config):
        return "\n".join(texts)
    if config.flags == "compiled":
        texts.insert(0, flags.computed(case))
    return fill("direct/flags.cu", {"entry": "\n".join(texts)})


def _skips(case: Case, config: CudaConfig) -> bool:
    """Return whether threads skip solid cells and treat all links as open (implicit bounce-back)."""
    return config.implicit and bool(case.geometry)


def _entry(case: Case, config: CudaConfig, one: Pass, parts: Parts, planes: bool) -> str:
    phase, skips = one.phase, _skips(case, config)
    regions = box.entry_regions(case, config, one, planes=planes)
    if by_words(case, config) and not skips:
        source, target = box.buffers_of(phase)
        regions["read"] = flags.reads(case, config, phase, source)
        regions["write"] = flags.writes(case, config, phase, target)
    if phase.blockwise:
        regions |= {"lane": fill("direct/ring_lane.cu", {}), "read": regions["read"] + _BARRIER}
    call = f"        {flags.UNLESS_SOLID * skips}{box.collide_call(case)}"
    completed = physics.complete(case, words_of(case, config), flags.TYPES)
    regions |= {
        "rows": _rows(case, config, phase),
        "read": reading(parts, regions["read"], "x + z"),
        "call": box.shifted(config, [*completed, call]) if phase.collides else "",
        "write": writing(parts, regions["write"]),
    }
    return fill("direct/one_step.cu", regions, inside="entry")


def _rows(case: Case, config: CudaConfig, phase: Phase) -> str:
    """Return the declarations of the rows that a pass touches, and of what it reads about cut links."""
    if _skips(case, config):
        return flags.rows_of_fluid(case, config, phase)
    return flags.rows(case, config, phase) if by_words(case, config) else access.rows(case, phase)
