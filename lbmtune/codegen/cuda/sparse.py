"""The CUDA program of a configuration with indirect addressing."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.conditions import words_of
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.indirect import listed_rows
from lbmtune.catalogue.links import seen_by
from lbmtune.catalogue.scheme import Phase
from lbmtune.codegen.cuda import indirect, layout, physics
from lbmtune.codegen.cuda.assemble import fill
from lbmtune.codegen.cuda.program import bounds, compiler_options, real, stored_format
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import LIST, Launch, Program

_ONE_STEP, _COLUMN = "cuda/indirect.cu", "cuda/list_column.cu"
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
    parts += [fill("cuda/walls.cu", {})] * bool(words_of(case, config).walls)
    regions = {
        "title": f"// {case.lattice} {case.collision}, {case.flow}\n// {config.brief}\n",
        "constants": _constants(case, config),
        "storage": stored_format(config),
        "layout": layout.functions(case, config),
        "collide": physics.functions(case),
        "entry": "\n".join([*parts, _entries(seen, config)]),
    }
    return Program("cuda", case, config, fill(_ONE_STEP, regions) + "\n", compiler_options(config), period)


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


def _entries(case: Case, config: CudaConfig) -> str:
    """All passes of all parities, by threads that update one group of sites, or several one after another."""
    entries = "\n".join(_entry(case, config, one) for one in passes(config, case.stencil))
    if config.march == 1:
        return entries
    constants = f"constexpr int MARCH = {config.march}, AHEAD = {config.prefetch};"
    return fill(_COLUMN, {"constants": constants, "entry": entries})


def _entry(case: Case, config: CudaConfig, one: Pass) -> str:
    rows, phase = listed_rows(case, config), one.phase
    source, target = ("populations",) * 2 if phase.in_place else ("source", "target")
    taken = ", ".join(("f", "v", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    names = indirect.names(case, config.propagation, rows, phase)
    ends = physics.complete(case, words_of(case, config), "types.of")
    return fill(
        _ONE_STEP if config.march == 1 else _COLUMN,
        {
            "kept": f"        Words {', '.join(names)};" if names else "",
            "keep": f"        sets[turn] = {{{', '.join(names)}}};" if names else "",
            "take": "\n".join(f"        const Words& {name} = kept.{name};" for name in names),
            "signature": _signature(case, config, one),
            "words": indirect.words(case, config.propagation, rows, phase, config.prefetch_index),
            "read": indirect.reads(case, rows, phase, source),
            "call": "\n".join([*ends, f"        collide({taken});"]) if phase.collides else "",
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
        needed |= physics.cell_scalars(case)
    return physics.ordered(needed)


def _launch(case: Case, config: CudaConfig, one: Pass) -> Launch:
    return Launch(
        one.entry,
        (*one.buffers, LIST, *_COUNTS, *_scalars(case, one.phase)),
        block=config.block,
        covers=(config.block[0] * config.cells_per_thread * config.march, 1, 1),
        over="sites",
    )
