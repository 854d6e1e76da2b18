"""The CUDA program of a pass over fluid sites, whose neighbours an index list holds."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import listed_rows, used
from lbmtune.codegen.cuda.shared import box, entry, physics
from lbmtune.codegen.cuda.shared.ablation import WHOLE, Parts, reading, writing
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import component_functions, copy_groups, hinted_format, max_elements, types
from lbmtune.codegen.cuda.sparse import access
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import LIST, Launch, Program, period_of

_SITES, _GROUPS, _SHARED = "sparse/sites.cu", "sparse/groups.cu", "sparse/shared_buffers.cu"
_COUNTS = ("sites", "nodes")


def render(case: Case, config: Sparse, parts: Parts = WHOLE) -> Program:
    """Return the program of a legal configuration: one entry per parity of its scheme."""
    seen = seen_by(case, config)
    period = period_of(config, case.stencil, lambda one: [_launch(seen, config, one)])
    texts = [fill("sparse/pointer_chasing.cu", {})] * (config.links == "three_pointers")
    texts += [fill("sparse/list_prefetch.cu", {})] * bool(config.prefetch_index)
    texts += [fill("shared/moving_walls.cu", {})] * bool(words_of(case, config).walls)
    regions = {
        "title": entry.title(case, config),
        "constants": _constants(case, config),
        "storage": hinted_format(config),
        "layout": component_functions(case, config),
        "collide": physics.functions(case),
        "entry": "\n".join([*texts, _entries(seen, config, parts)]),
    }
    return entry.program(case, config, fill(_SITES, regions) + "\n", period, max_elements(case, config))


def _constants(case: Case, config: Sparse) -> str:
    return "\n".join(
        (
            types(case, config),
            f"constexpr int Q = {case.stencil.q};",
            f"constexpr int CELLS = {config.cells_per_thread};",
            f"constexpr int BLOCK = {config.block[0]};",
            f"constexpr Real unit = {config.stored.scale:.0f};",
        )
    )


def _entries(case: Case, config: Sparse, parts: Parts) -> str:
    """Return all passes of all parities, with one group of sites per thread or several one after another."""
    entries = "\n".join(_entry(case, config, one, parts) for one in passes(config, case.stencil))
    if config.sites_per_thread == 1:
        return entries
    constants = f"constexpr int MARCH = {config.sites_per_thread}, AHEAD = {config.prefetch_sites};"
    regions = {"constants": constants, "entry": entries}
    if config.prefetch_to == "shared":
        regions["helpers"] = fill(_SHARED, {"copies": copy_groups(), "variants": ""})
    return fill(_GROUPS, regions)


def _entry(case: Case, config: Sparse, one: Pass, parts: Parts) -> str:
    rows, phase = listed_rows(case, config), one.phase
    source, target = box.buffers_of(phase)
    of_pass = case, config.propagation, rows, phase
    names, shared = access.names(*of_pass), config.sites_per_thread > 1 and config.prefetch_to == "shared"
    completed = physics.complete(case, words_of(case, config), "types.of")
    count = len(rows.read_first(used(case, config.propagation, phase)))
    regions = {
        "kept": f"        Words {', '.join(names)};" if names else "",
        "words_copied": f"    constexpr int COPIED = {count};",
        "keep": f"        {'kept' if shared else 'sets[turn]'} = {{{', '.join(names)}}};" if names else "",
        "fetch": access.copies(*of_pass, config.prefetch_index),
        "take": "\n".join(f"        const Words& {name} = kept.{name};" for name in names),
        "signature": _signature(case, config, one),
        "words": access.copied(*of_pass) if shared else access.words(*of_pass, config.prefetch_index),
        "read": reading(parts, access.reads(case, rows, phase, source), "site"),
        "call": "\n".join([*completed, f"        {box.collide_call(case)}"]) if phase.collides else "",
        "write": writing(parts, access.writes(case, rows, phase, target)),
    }
    if config.sites_per_thread == 1:
        return fill(_SITES, regions, inside="entry")
    return fill(_GROUPS, regions | (variants(_SHARED, regions) if shared else {}), inside="entry")


def _signature(case: Case, config: Sparse, one: Pass) -> str:
    taken = ("const Word* __restrict__ links", *entry.parameters((), _COUNTS, _scalars(case, one.phase)))
    return box.pass_head(config, one, "", *taken)


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    return box.pass_scalars(case, phase, access.gain_scalars(case, phase))


def _launch(case: Case, config: Sparse, one: Pass) -> Launch:
    return Launch(
        one.entry,
        (*one.places, LIST, *_COUNTS, *_scalars(case, one.phase)),
        block=config.block,
        covers=(config.block[0] * config.cells_per_thread * config.sites_per_thread, 1, 1),
        over="sites",
        shared_bytes=config.pass_shared_bytes(case, one.phase),
    )
