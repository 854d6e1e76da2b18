"""The CUDA program of a pass over fluid sites, whose neighbours an index list holds."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.families.cuda.sparse import Sparse
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import walls, words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.sparse.index_list import (
    CUT_BIT,
    MOVING_BIT,
    NodeList,
    Pointer,
    Used,
    Way,
    gains,
    listed_rows,
    pointer,
    selects,
    steps,
    used,
    ways,
)
from lbmtune.codegen.cuda.shared import box, entry, physics
from lbmtune.codegen.cuda.shared.ablation import WHOLE, Parts, reading, writing
from lbmtune.codegen.cuda.shared.access import slot
from lbmtune.codegen.cuda.shared.assemble import fill, variants
from lbmtune.codegen.cuda.shared.storage import component_functions, copy_groups, hinted_format, max_elements, types
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import LIST, Launch, Program, period_of
from lbmtune.lattice import Vector

_SITES, _GROUPS, _SHARED = "sparse/sites.cu", "sparse/groups.cu", "sparse/shared_buffers.cu"
_COUNTS = ("sites", "nodes")
ABLATABLE = True
"""Parts of its kernels can be left out."""


def render(case: Case, config: Sparse, parts: Parts = WHOLE) -> Program:
    """Return the program of a legal configuration: one entry per parity of its scheme."""
    seen = seen_by(case, config)
    period = period_of(config, case.stencil, lambda one: [_launch(seen, config, one)])
    texts = [fill("sparse/pointer_chasing.cu", {})] * config.chases
    texts += [fill("sparse/list_prefetch.cu", {})] * bool(config.prefetch_index)
    texts += [fill("shared/moving_walls.cu", {})] * bool(words_of(case, config).walls)
    regions = {
        "constants": _constants(case, config),
        "storage": hinted_format(config),
        "layout": component_functions(case, config),
        "collide": physics.functions(case),
        "entry": "\n".join([*texts, _entries(seen, config, parts)]),
    }
    return entry.program(case, config, entry.source(_SITES, case, config, regions), period, max_elements(case, config))


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
    (source, target), needed = box.buffers_of(phase), used(case, config.propagation, phase)
    first, names = rows.read_first(needed), ", ".join(_names(rows, needed))
    several, shared = config.sites_per_thread > 1, config.prefetch_to == "shared"
    early, pitch = _early(rows, first, config.prefetch_index), _pitch(rows)
    fetched = (f"    fetch_words(waiting + {n} * BLOCK, links, {row}, {pitch}, site);" for n, row in enumerate(first))
    if several and shared:
        words = _declared(rows, needed, lambda row: f"waiting[{first.index(row)} * BLOCK]")
    else:
        words = [*early, *_declared(rows, needed, partial(_load, rows))]
    completed = physics.complete(case, words_of(case, config), "types.of")
    taken = ("const Word* __restrict__ links", *entry.parameters((), _COUNTS, _scalars(case, phase)))
    regions = {
        "kept": f"        Words {names};" if names else "",
        "words_copied": f"    constexpr int COPIED = {len(first)};",
        "keep": f"        {'kept' if shared else 'sets[turn]'} = {{{names}}};" if names else "",
        "fetch": "\n".join([*early, *fetched]),
        "take": "\n".join(f"        const Words& {name} = kept.{name};" for name in _names(rows, needed)),
        "signature": box.pass_head(config, one, "", *taken),
        "words": "\n".join(words),
        "read": reading(parts, _reads(case, rows, phase, source), "site"),
        "call": "\n".join([*completed, f"        {box.collide_call(case)}"]) if phase.collides else "",
        "write": writing(parts, _writes(case, rows, phase, target)),
    }
    if not several:
        return fill(_SITES, regions, inside="entry")
    return fill(_GROUPS, regions | (variants(_SHARED, regions) if shared else {}), inside="entry")


def _scalars(case: Case, phase: Phase) -> tuple[str, ...]:
    moved = [way.link for way in ways(case.stencil, phase) if gains(case, phase, way)]
    return box.pass_scalars(case, phase, physics.wall_scalars(case, moved))


def _launch(case: Case, config: Sparse, one: Pass) -> Launch:
    return Launch(
        one.entry,
        (*one.places, LIST, *_COUNTS, *_scalars(case, one.phase)),
        block=config.block,
        covers=(config.block[0] * config.cells_per_thread * config.sites_per_thread, 1, 1),
        over="sites",
        shared_bytes=config.pass_shared_bytes(case, one.phase),
    )


_SIGN = {-1: "m", 0: "o", 1: "p"}
_BITS = {CUT_BIT: "CUT", MOVING_BIT: "MOVING"}


def _declared(rows: NodeList, needed: Used, own: Callable[[int], str]) -> list[str]:
    """Return the declarations of the list words that a pass reads, stored ones before those found through them.

    own: the word at the site itself of a row.
    """
    found = [rows.pointers[n] for n in needed.pointers]
    found = sorted(found, key=lambda p: steps(p.open)) if rows.chased else found
    words = {_name(p): _pointer(rows, p, own) for p in found}
    words |= {name: own(row) for name, row in _others(rows, needed)}
    return [f"    const Words {name} = {word};" for name, word in words.items()]


def _others(rows: NodeList, needed: Used) -> list[tuple[str, int]]:
    """Return name and row of the words that are no pointers."""
    return [("mask", rows.mask_row)] * needed.masks + [("types", rows.type_row)] * needed.types


def _names(rows: NodeList, needed: Used) -> list[str]:
    """Return the names of the words, always in the same order."""
    return [*(_name(rows.pointers[n]) for n in needed.pointers), *(name for name, _ in _others(rows, needed))]


def _early(rows: NodeList, first: Iterable[int], ahead: int) -> list[str]:
    """Return the prefetches of the words that lie in the list, for a site further on."""
    asked = [f"        ask_for(links, {row}, {_pitch(rows)}, site + {ahead});" for row in first if ahead]
    return [f"    if (site + {ahead} < sites) {{", *asked, "    }"] if asked else []


def _reads(case: Case, rows: NodeList, phase: Phase, buffer: str) -> str:
    plain = [_moved(case, rows, way, buffer) for way in _of("read", case, phase)]
    return "\n".join(plain + _gains(case, rows, phase, "read"))


def _writes(case: Case, rows: NodeList, phase: Phase, buffer: str) -> str:
    plain = [_moved(case, rows, way, buffer) for way in _of("write", case, phase)]
    return "\n".join(_gains(case, rows, phase, "write") + plain)


def _of(verb: str, case: Case, phase: Phase) -> Iterator[Way]:
    return (way for way in ways(case.stencil, phase) if way.verb == verb)


def _pointer(rows: NodeList, found: Pointer, own: Callable[[int], str]) -> str:
    start = rows.before(found)
    return own(rows.row(found)) if start is None else f"words_at(links, {rows.row(found)}, nodes, {_name(start)})"


def _load(rows: NodeList, row: int) -> str:
    return f"words(links, {row}, {_pitch(rows)}, site)"


def _pitch(rows: NodeList) -> str:
    return "nodes" if rows.chased else "sites"


def _name(found: Pointer) -> str:
    """Return the name of a word: link_pom follows a link and stays where it is cut; node_pom leads to an offset."""
    return f"link_{_signs(found.link)}" if found.link else f"node_{_signs(found.open)}"


def _signs(offset: Vector) -> str:
    return "".join(_SIGN[a] for a in offset)


def _moved(case: Case, rows: NodeList, way: Way, buffer: str) -> str:
    """Return one load or store; with both slots and the flag if the slot depends on it."""
    found = pointer(case, way)
    slots = slot(way.open, buffer)
    where = f"{_name(found)}, n" if found else "at"
    flag = ""
    if selects(case, way):
        slots += f", {slot(way.cut, buffer)}"
        flag = f", {_flag(rows, way.link)}"
    return f"    {way.verb}_{'node' if found else 'here'}(f[{way.direction}], {slots}, {where}{flag});"


def _flag(rows: NodeList, link: Vector) -> str:
    """Return words and bit that tell whether a link is cut."""
    row, bit = rows.flags(link)
    return f"mask, {bit}" if row == rows.mask_row else f"{_name(rows.pointers[row])}, {_BITS[bit]}"


def _gains(case: Case, rows: NodeList, phase: Phase, verb: str) -> list[str]:
    """Return the momentum of moving walls; flags in a row of their own are loaded only at such a wall."""
    lines: list[str] = []
    masked: list[str] = []
    for wall, way in product(walls(case), _of(verb, case, phase)):
        if gains(case, phase, way):
            i = way.direction if verb == "read" else case.stencil.opposite[way.direction]
            row, bit = rows.flags(way.link)
            own = row == rows.mask_row
            found, bit_name = ("moving", str(bit)) if own else (_name(rows.pointers[row]), "MOVING")
            flag = f"{physics.of_wall(case, wall, found, 'types.of', everywhere=True)}, {bit_name}"
            (masked if own else lines).append(
                f"add(f[{way.direction}], {physics.gain(case.lattice, i, wall)}, {flag});"
            )
    text = [f"    {line}" for line in lines]
    if masked:
        head = ["    if (any(mask, MOVING)) {", f"        const Words moving = {_load(rows, rows.mask_row + 1)};"]
        text += [*head, *(f"        {line}" for line in masked), "    }"]
    return text
