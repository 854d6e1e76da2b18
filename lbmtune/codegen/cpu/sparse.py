"""The CPU program of the sparse family: blocks of fluid sites whose neighbours are found by an index list."""

from dataclasses import dataclass
from functools import cached_property

import sympy

from lbmtune.catalogue.boundaries.cut_links import seen_by
from lbmtune.catalogue.families.cpu.sparse import SITES_AT_ONCE, Sparse
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import Words, words_of
from lbmtune.catalogue.schemes.scheme import Place
from lbmtune.catalogue.sparse.index_list import (
    MOVING_BIT,
    NodeList,
    Pointer,
    Used,
    listed_rows,
    pointer,
    selects,
    steps,
    used,
)
from lbmtune.codegen.cpu.shared.collision import collision_lines, completion_lines, needs_lanes, wall_gain_lines
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import (
    LANES,
    buffer_names,
    codes,
    launch_arguments,
    module,
    parallel_loop,
    parameter_names,
    row_name,
    signature,
)
from lbmtune.codegen.cpu.shared.streams import Stream, Streams
from lbmtune.codegen.passes import Pass, passes, pointer_name
from lbmtune.codegen.program import LIST, Launch, Program, period_of
from lbmtune.codegen.skeleton import block, filled, indented
from lbmtune.codegen.trace import Traced, plain

_NODE_MASK = (1 << MOVING_BIT) - 1
"""Bits of a word of the list that hold the number of a node."""
_EXTENTS = (LIST, "sites", "nodes")
_BY_LIST = ("gather", "gather_cut", "scatter", "scatter_cut", "load_cut", "store_cut", "chosen")
_BY_CHASE = ("led_by", "led_on", "gather_at", "gather_at_cut", "scatter_at", "scatter_at_cut")


def render(case: Case, config: Sparse) -> Program:
    """Return the program of a legal configuration of the sparse family."""
    constants = Constants()
    steps = [_step(case, config, one, constants) for one in passes(config, case.stencil)]
    period = period_of(
        config, case.stencil, lambda one: [Launch(one.entry, launch_arguments(case, config, one, _EXTENTS))]
    )
    used = {
        "chase": config.chases,
        "lanes": needs_lanes(case, config.lanes, by_word=True),
        "lists": True,
        "prefetches": _prefetches_populations(config),
    }
    support = [name for name, is_used in used.items() if is_used]
    width, group = _grouping(case, config)
    values = {"width": width, "group": group, "form": config.gather}
    names = _names(config, support, width, group)
    return module(case, config, constants, steps, period, names, support, "sparse/module", values)


def _grouping(case: Case, config: Sparse) -> tuple[str, str]:
    """Return the nodes of a group in a slot, and the elements from one group to the next."""
    width, extents = max(config.memory.run, 1), Extents(0, 1, 1, case.stencil.q)
    along = config.memory.along_x
    return str(width), str(along(width, extents) - along(0, extents))


def _prefetches_populations(config: Sparse) -> bool:
    return bool(config.prefetch_propagated or config.prefetch_local)


def _names(config: Sparse, support: list[str], width: str, group: str) -> list[str]:
    names = [f"{name} = by_list.{name}" for name in _BY_LIST]
    if _prefetches_populations(config):
        names += ["prefetch = prefetches.prefetch"]
    elif config.prefetch_index:
        names += ["prefetch = simd.prefetch"]
    names += ["stream = many.stream"] if config.streaming_stores else []
    if "chase" in support:
        access = f'"{config.computed.dtype}", {config.lanes}, {width}, {group}, "{config.gather}"{codes(config)}'
        names += [f"by_chase = chase.nodes({access})", *(f"{name} = by_chase.{name}" for name in _BY_CHASE)]
    return [*names, *([LANES] if "lanes" in support else [])]


def _step(case: Case, config: Sparse, one: Pass, constants: Constants) -> str:
    phase, words = one.phase, words_of(case, config)
    buffers, names = buffer_names(phase), parameter_names(case, config, phase, _EXTENTS)
    sites = Sites(Streams(seen_by(case, config), config, phase, (buffers[0], buffers[-1])))
    invariants, body = collision_lines(case, config, phase, constants)
    gains = wall_gain_lines(sites.streams, constants)
    if words.walls:
        constants.name(sympy.Integer(1))
    completion = sites.complete(completion_lines(case, config.lanes, constants, words)) if phase.collides else []
    return filled(
        "sparse/sites",
        entry=one.entry,
        row=row_name(one),
        arguments=", ".join(names),
        signature=signature(config, names),
        **parallel_loop(config),
        lanes=config.lanes,
        block=SITES_AT_ONCE,
        before=indented([*invariants, *gains, *sites.before()], 1),
        fence=indented(["simd.fence()"] if config.streaming_stores else [], 2),
        body=indented([*sites.cell(), *sites.prefetches(), *sites.loads(), *completion, *body, *sites.stores()], 2),
    ).rstrip()


@dataclass(frozen=True)
class Sites:
    """Lines before and inside the loop over sites; x is the number of the first site of a vector, and of its node."""

    streams: Streams

    @cached_property
    def rows(self) -> NodeList:
        """Return the rows of the index list."""
        return listed_rows(self.streams.case, self.streams.config)

    @cached_property
    def words(self) -> Words:
        """Return the fields of the type word of a site."""
        return words_of(self.streams.case, self.streams.config)

    @cached_property
    def extents(self) -> Extents:
        """Return the storage extents, by their names in the text."""
        return Extents(Traced("nodes", "//"), 1, 1, self.streams.case.stencil.q)

    def before(self) -> list[str]:
        """Return the definitions of the starts of slots."""
        places = (place for s in self.streams.all for place in (s.open, s.cut) if not place.pointer)
        starts = {p.slot: self.streams.config.memory.component(p.slot, self.extents) for p in places}
        return [f"slot{slot} = {plain(start)}" for slot, start in sorted(starts.items())]

    def cell(self) -> list[str]:
        """Return the definitions of the site's place in a slot and of nodes that are found by pointer chasing."""
        here = f"here = {plain(self.streams.config.memory.along_x(Traced('x', '//'), self.extents))}"
        return [here, *map(self._node, self._chased_pointers())]

    def prefetches(self) -> list[str]:
        """Return the prefetches of words of the index list and of populations."""
        return [*self._prefetched_words(), *self._prefetched_populations()]

    def _prefetched_words(self) -> list[str]:
        ahead = self.streams.config.prefetch_index
        if not ahead:
            return []
        kept = (p for n in self._used.pointers if (p := self.rows.pointers[n]) in self.rows.kept)
        others = [self.rows.mask_row] * self._used.masks + [self.rows.type_row] * self._used.types
        return [f"prefetch(links, {self._row(row)} + {ahead})" for row in (*map(self.rows.row, kept), *others)]

    def _prefetched_populations(self) -> list[str]:
        """Return the prefetches of what the first site of a later vector reads, in its own node and in others."""
        config, along = self.streams.config, self.streams.config.memory.along_x
        reads = [s for s in self.streams.reads if self.streams.ahead(s)]
        at = plain(along(Traced(f"(x + {config.prefetch_local})", "//"), self.extents))
        own = [f"prefetch({s.buffer}, {_slot(s.open)} + {at})" for s in reads if not any(s.open.offset)]
        others = [line for s in reads if any(s.open.offset) for line in self._prefetched_at(s)]
        # the list has no words beyond its last site
        later = [f"later = min(x + {config.prefetch_propagated}, sites - 1)"] * bool(others)
        return [*own, *later, *others]

    def _prefetched_at(self, s: Stream) -> list[str]:
        """Return the prefetch of a population at the node to which the pointer of site `later` leads."""
        listed = pointer(self.streams.case, s)
        assert listed is not None
        slot, word = _slot(s.open), f"links[{self._row(self.rows.pointers.index(listed), 'later')}]"
        if selects(self.streams.case, s):
            row, bit = self.rows.flags(s.link)
            slot = f"({_slot(s.cut)} if links[{self._row(row, 'later')}] >> {bit} & 1 else {slot})"
        place = plain(self.streams.config.memory.along_x(Traced("node", "//"), self.extents))
        return [f"node = {word} & {_NODE_MASK}", f"prefetch({s.buffer}, {slot} + {place})"]

    def loads(self) -> list[str]:
        """Return the lines that load f0, f1, ..."""
        streams = zip(self.streams.directions, self.streams.reads, strict=True)
        return [f"f{i} = {self._call(s, 'load', 'gather')}{self._gained(s)}" for i, s in streams]

    def complete(self, lines: list[str]) -> list[str]:
        """Return the loop over the sites of a vector at faces. lines: those of one site, by its `word`."""
        if not lines:
            return []
        lanes, words = self.streams.config.lanes, self._row(self.rows.type_row)
        if lanes == 1:
            return [f"word = links[{words}]", *lines]
        return block(f"for k in range({lanes}):", [f"word = links[{words} + k]", *block("if word:", lines)])

    def stores(self) -> list[str]:
        """Return the lines that store g0, g1, ..."""
        streams = zip(self.streams.directions, self.streams.writes, strict=True)
        return [self._call(s, self._leave(s), "scatter", f"g{i}{self._gained(s)}") for i, s in streams]

    def _leave(self, s: Stream) -> str:
        """Return the function that stores to the site itself."""
        streams = self.streams.config.streaming_stores and not selects(self.streams.case, s)
        return "stream" if streams else "store"

    def _chased_pointers(self) -> list[Pointer]:
        """Return the chased pointers of the pass, each after the one that it starts from."""
        pointers = (self.rows.pointers[n] for n in self._used.pointers)
        return sorted(pointers, key=lambda p: steps(p.open)) if self.rows.chased else []

    @property
    def _used(self) -> Used:
        return used(self.streams.case, self.streams.config.propagation, self.streams.phase)

    def _node(self, node: Pointer) -> str:
        start, row = self.rows.before(node), self.rows.row(node)
        if start is None:
            return f"{_name(node)} = led_by(links, {self._row(row)})"
        return f"{_name(node)} = led_on(links, {row} * nodes, {_name(start)})"

    def _row(self, row: int, site: str = "x") -> str:
        return f"{row} * {'nodes' if self.rows.chased else 'sites'} + {site}" if row else site

    def _call(self, s: Stream, local: str, by_list: str, *value: str) -> str:
        """Return the access of a population: at the site itself (local) or at a node of the list."""
        listed, cut = pointer(self.streams.case, s), selects(self.streams.case, s)
        taken = (s.open, s.cut) if cut else (s.open,)
        slots = [*map(_slot, taken)]
        row, bit = self.rows.flags(s.link) if cut else (0, 0)
        flags = [f"{self._row(row)}, {bit}"] * cut
        name = (f"{by_list}_at" if self.rows.chased else by_list) if listed else local
        if listed and not self.rows.chased:
            places = [*slots, "links", self._row(self.rows.pointers.index(listed)), *flags]
        else:
            places = [*slots, _name(listed)] if listed else [f"{slot} + here" for slot in slots]
            places += [*["links"] * cut, *flags]
        return f"{name}{'_cut' * cut}({', '.join([s.buffer, *places, *value])})"

    def _gained(self, s: Stream) -> str:
        if not s.gain:
            return ""
        row, bit = self.rows.flags(s.link)
        # a mask has a row of its own that says so of moving walls
        flag = f"{self._row(row + 1)}, {bit}" if row == self.rows.mask_row else f"{self._row(row)}, {MOVING_BIT}"
        if not self.words.walls:
            return f" + chosen(links, {flag}, {s.gain})"
        own = self._row(self.rows.type_row)
        return "".join(
            f" + chosen(links, {own}, {field.shift}, c1) * chosen(links, {flag}, {s.gain}_{wall})"
            for wall, field in self.words.walls
        )


def _slot(place: Place) -> str:
    """Return the name of the first element of a slot."""
    return pointer_name(place.slot) if place.pointer else f"slot{place.slot}"


def _name(found: Pointer) -> str:
    """Return the name of a node: node_pom is one step forward along x and one back along z."""
    return "node_" + "".join("mop"[a + 1] for a in found.open)
