"""The CUDA program of a configuration with indirect addressing."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.indirect import listed_rows
from lbmtune.catalogue.links import seen_by
from lbmtune.catalogue.scheme import Phase
from lbmtune.codegen.cuda import indirect, layout, physics
from lbmtune.codegen.cuda.assemble import fill
from lbmtune.codegen.cuda.program import bounds, compiler_options, real, stored_format
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import LIST, Launch, Program

_COUNTS = ("sites", "nodes")


def render_indirect(case: Case, config: CudaConfig) -> Program:
    """The program of a legal configuration: one entry per parity of its scheme."""
    seen = seen_by(case, config)
    period = tuple(
        tuple(_launch(seen, config, one) for one in passes_of(config, case.stencil, parity))
        for parity in range(config.propagation.period)
    )
    parts = [fill("cuda/chase.cu", {})] * config.chased
    parts += [fill("cuda/list_ahead.cu", {})] * bool(config.prefetch_index)
    regions = {
        "title": f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n",
        "constants": _constants(case, config),
        "storage": stored_format(config),
        "layout": layout.functions(case, config),
        "collide": physics.collide_function(case.collision, case.lattice, case.forced),
        "entry": "\n".join([*parts, *(_entry(seen, config, one) for one in passes(config, case.stencil))]),
    }
    return Program("cuda", case, config, fill("cuda/indirect.cu", regions) + "\n", compiler_options(config), period)


def _constants(case: Case, config: CudaConfig) -> str:
    return "\n".join(
        (
            f"typedef {real(config.compute)} Real;",
            f"typedef {layout.index_type(case, config)} Index;",
            f"constexpr int Q = {case.stencil.q};",
            f"constexpr int CELLS = {config.cells_per_thread};",
            f"constexpr int BLOCK = {config.block[0]};",
            f"constexpr Real unit = {config.stored.scale:.0f};",
        )
    )


def _entry(case: Case, config: CudaConfig, one: Pass) -> str:
    rows, phase = listed_rows(case, config), one.phase
    source, target = ("populations",) * 2 if phase.in_place else ("source", "target")
    taken = ", ".join(("f", "v", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    return fill(
        "cuda/indirect.cu",
        {
            "signature": _signature(case, config, one),
            "words": indirect.words(case, config.propagation, rows, phase, config.prefetch_index),
            "read": indirect.reads(case, rows, phase, source),
            "call": f"        collide({taken});" if phase.collides else "",
            "write": indirect.writes(case, rows, phase, target),
        },
        inside="entry",
    )


def _signature(case: Case, config: CudaConfig, one: Pass) -> str:
    if one.phase.in_place:
        buffers = "Stored* populations"
    else:
        buffers = "const Stored* __restrict__ source, Stored* __restrict__ target"
    takes = [f"const int {n}" for n in _COUNTS] + [f"const Real {n}" for n in _scalars(case, one.phase)]
    return (
        f'extern "C" __global__ void {bounds(config)}{one.entry}(\n'
        f"    {buffers}, const Word* __restrict__ links, {', '.join(takes)})"
    )


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    needed = indirect.gain_scalars(case, phase)
    if phase.collides:
        needed |= {*physics.collision_scalars(case.collision, case.lattice, case.forced)}
    return tuple(name for name in physics.SCALARS if name in needed)


def _launch(case: Case, config: CudaConfig, one: Pass) -> Launch:
    return Launch(
        one.entry,
        (*one.buffers, LIST, *_COUNTS, *_scalars(case, one.phase)),
        block=config.block,
        covers=(config.block[0] * config.cells_per_thread, 1, 1),
        over="sites",
    )
