"""The CUDA program of a configuration with indirect addressing."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.prefetch_buffers import waiting_bytes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import listed_rows, used
from lbmtune.codegen.cuda.shared import layout, physics
from lbmtune.codegen.cuda.shared.assemble import fill
from lbmtune.codegen.cuda.shared.program import bounds, compiler_options, copies, places, real, stored_format
from lbmtune.codegen.cuda.sparse import access as indirect
from lbmtune.codegen.passes import Pass, passes, passes_of
from lbmtune.codegen.program import LIST, Launch, Program

_ONE_STEP, _COLUMN, _SHARED = "cuda/indirect.cu", "cuda/list_column.cu", "cuda/list_shared.cu"
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
    file = _entry_file(config)
    if file == _ONE_STEP:
        return entries
    constants = f"constexpr int MARCH = {config.march}, AHEAD = {config.prefetch};"
    further = {"copies": copies()} if file == _SHARED else {}
    return fill(file, {"constants": constants, **further, "entry": entries})


def _entry_file(config: CudaConfig) -> str:
    """The skeleton of an entry: of a group of sites, or of several, whose words wait in registers or shared memory."""
    if config.march == 1:
        return _ONE_STEP
    return _SHARED if config.copies_ahead else _COLUMN


def _entry(case: Case, config: CudaConfig, one: Pass) -> str:
    rows, phase = listed_rows(case, config), one.phase
    source, target = ("populations",) * 2 if phase.in_place else ("source", "target")
    taken = ", ".join(("f", "v", *physics.collision_scalars(case.collision, case.lattice, case.forced)))
    of_pass = case, config.propagation, rows, phase
    names, file = indirect.names(*of_pass), _entry_file(config)
    count = len(rows.read_first(used(case, config.propagation, phase)))
    ends = physics.complete(case, words_of(case, config), "types.of")
    return fill(
        file,
        {
            "kept": f"        Words {', '.join(names)};" if names else "",
            "count": f"    constexpr int COPIED = {count};",
            "keep": f"        {'kept' if file == _SHARED else 'sets[turn]'} = {{{', '.join(names)}}};" if names else "",
            "fetch": indirect.copies(*of_pass, config.prefetch_index),
            "take": "\n".join(f"        const Words& {name} = kept.{name};" for name in names),
            "signature": _signature(case, config, one),
            "words": indirect.copied(*of_pass) if file == _SHARED else indirect.words(*of_pass, config.prefetch_index),
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
    words = f"const Word* __restrict__ links, {', '.join(takes)}"
    return f'extern "C" __global__ void {bounds(config)}{one.entry}(\n    {places(buffers, one.phase)} {words})'


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    needed = indirect.gain_scalars(case, phase)
    if phase.collides:
        needed |= physics.cell_scalars(case)
    return physics.ordered(needed)


def _launch(case: Case, config: CudaConfig, one: Pass) -> Launch:
    return Launch(
        one.entry,
        (*one.places, LIST, *_COUNTS, *_scalars(case, one.phase)),
        block=config.block,
        covers=(config.block[0] * config.cells_per_thread * config.march, 1, 1),
        over="sites",
        shared_bytes=waiting_bytes(case, config, one.phase),
    )
