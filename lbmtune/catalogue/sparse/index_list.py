"""Indirect addressing: fluid sites only, and for each a list of the nodes that hold its places in other cells.

What stands in the list follows from the table of the scheme:

- A place that lies at one and the same cell whether its link is cut or not needs one pointer for its offset, shared
  by all such places: seven for Esoteric Twist, whatever the lattice.
- A place that lies elsewhere where its link is cut needs a pointer for its link. Its two highest bits say whether the
  link is cut, and whether by a moving wall. What is read of direction i and what is written of its opposite meet
  there in the in-place schemes, so they share it.
- Where all such places lie forward along the axes, the list may keep three rows of pointers, one per axis, for every
  node: the others are found by chasing, the neighbour of a neighbour.
- A place that stays in its cell, or shares its pointer, but changes its slot where its link is cut, needs one bit: it
  stands in one more word of the site, the mask.
- What a site does at faces that are no walls, and with which velocity its wall moves where there are several, stands
  in one more word, its type (`catalogue.problem.cell_types`).

Sources: Robertsen 2018, section 3.2 (index list, 32 bits); Geier, Schoenherr 2017 (places shared by an octant,
pointer chasing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from lbmtune.catalogue.boundaries.cut_links import may_cut, seen_by
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import layout
from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import HERE, Phase, Place, Scheme
from lbmtune.lattice import Lattice, Vector, negate

CUT_BIT, MOVING_BIT = 31, 30
"""Bits of a pointer: its link is cut; it is cut by a moving wall. In the mask, MOVING_BIT says that any link is."""
MAX_NODES = 1 << MOVING_BIT


class Linked(Protocol):
    """What can lie elsewhere where a link is cut."""

    @property
    def open(self) -> Place: ...
    @property
    def cut(self) -> Place: ...
    @property
    def link(self) -> Vector: ...


class Way(NamedTuple):
    """A read or a write of one population: its place while its link is open, and where it is cut."""

    verb: str
    direction: int
    open: Place
    cut: Place
    link: Vector


class Pointer(NamedTuple):
    """A row of the list: for each site, the node at offset `open` or, where `link` is cut, at offset `cut`.

    link: None where both are the same.
    """

    open: Vector
    cut: Vector
    link: Vector | None


@dataclass(frozen=True)
class NodeList:
    """The rows of the list: the kept pointers, then the mask, whose bit n says whether link masked[n] is cut.

    pointers: what passes need; moves: whether a row follows that says so of moving walls; chased: whether only
    pointers of one step are kept, of every node, and the others are found through them; typed: whether a row of types
    comes last.
    """

    pointers: tuple[Pointer, ...]
    masked: tuple[Vector, ...]
    moves: bool
    chased: bool = False
    typed: bool = False

    @property
    def kept(self) -> tuple[Pointer, ...]:
        """The pointers that have a row."""
        return tuple(p for p in self.pointers if sum(p.open) == 1) if self.chased else self.pointers

    @property
    def rows(self) -> int:
        """32-bit words per site, or per node where pointers are chased."""
        return self.type_row + self.typed

    @property
    def type_row(self) -> int:
        """Number of the row of types."""
        return len(self.kept) + bool(self.masked) + self.moves

    @property
    def mask_row(self) -> int:
        """Number of the row of the mask."""
        return len(self.kept)

    def row(self, found: Pointer) -> int:
        """The row that the last step to a pointer's node is read from."""
        return self.kept.index(_straight(_last_step(found.open)) if self.chased else found)

    def read_first(self, needed: Used) -> tuple[int, ...]:
        """Rows of which a pass reads its own word of each site: kept pointers, mask and types."""
        own = [self.row(p) for n in needed.pointers if self.before(p := self.pointers[n]) is None]
        return (*own, *[self.mask_row] * needed.masks, *[self.type_row] * needed.types)

    def before(self, found: Pointer) -> Pointer | None:
        """The pointer to the node that this step starts from; None where that is the site itself."""
        if not self.chased or found in self.kept:
            return None
        x, y, z = (a - b for a, b in zip(found.open, _last_step(found.open), strict=True))
        return _straight((x, y, z))

    def flags(self, link: Vector) -> tuple[int, int]:
        """Row and bit that say whether a link is cut."""
        for row, pointer in enumerate(self.pointers):
            if pointer.link == link:
                return row, CUT_BIT
        return self.mask_row, self.masked.index(link)


def _straight(offset: Vector) -> Pointer:
    return Pointer(offset, offset, None)


def _last_step(offset: Vector) -> Vector:
    """Along the first axis that an offset has a part in."""
    axis = next(n for n, part in enumerate(offset) if part)
    return (int(axis == 0), int(axis == 1), int(axis == 2))


def ways(lattice: Lattice, phase: Phase) -> Iterator[Way]:
    """All reads, then all writes: what is read goes back along -c_i, what is written along c_i."""
    for a in phase.accesses:
        yield Way("read", a.direction, a.read, a.cut_read, negate(lattice.velocities[a.direction]))
    for a in phase.accesses:
        yield Way("write", a.direction, a.write, a.cut_write, lattice.velocities[a.direction])


def gains(case: Case, phase: Phase, way: Way) -> bool:
    """Whether a moving wall may add to the population on this way."""
    return way.verb == phase.wall_term and case.may_move(way.link)


def pointer(case: Case, way: Linked) -> Pointer | None:
    """The row of the list that leads to the places of a way; None where they lie in the cell itself."""
    opened, cut = way.open.offset, way.cut.offset
    if may_cut(case, way.link) and opened != cut:
        return Pointer(opened, cut, way.link)
    return None if opened == HERE else Pointer(opened, opened, None)


def selects(case: Case, way: Linked) -> bool:
    """Whether the slot depends on whether the link is cut: where a pointer leads, it does in one step at least."""
    return may_cut(case, way.link) and (way.open.pointer or way.open.slot != way.cut.slot)


def phases(lattice: Lattice, scheme: Scheme) -> tuple[Phase, ...]:
    """The tables of all passes of all parities."""
    return tuple(phase for parity in range(scheme.period) for phase in scheme.passes(lattice, parity))


@lru_cache(maxsize=256)
def node_list(case: Case, scheme: Scheme, chased: bool = False) -> NodeList:
    """The rows that the passes of a scheme need. chased: see `NodeList`."""
    every = [(phase, way) for phase in phases(case.stencil, scheme) for way in ways(case.stencil, phase)]
    pointers = tuple(dict.fromkeys(p for _, way in every if (p := pointer(case, way))))
    linked = {p.link for p in pointers}
    flagged = [(phase, way) for phase, way in every if selects(case, way) or gains(case, phase, way)]
    masked = [(phase, way) for phase, way in flagged if way.link not in linked]
    return NodeList(
        pointers,
        tuple(dict.fromkeys(way.link for _, way in masked)),
        any(gains(case, phase, way) for phase, way in masked),
        chased,
        bool(layout(case, everywhere=True)),
    )


def listed_rows(case: Case, config: KernelConfig) -> NodeList:
    """The rows of the list of a configuration."""
    return node_list(seen_by(case, config), config.propagation, config.links == "three_pointers")


class Used(NamedTuple):
    """What one pass reads of the list at every site: pointers by number, kept or chased; mask and type, 0 or 1 each."""

    pointers: tuple[int, ...]
    masks: int
    types: int


def used(case: Case, scheme: Scheme, phase: Phase) -> Used:
    """What a pass reads of the list; the row of moving walls apart, which only sites at one read."""
    rows = node_list(case, scheme)
    found: set[int] = set()
    for way in ways(case.stencil, phase):
        if (needed := pointer(case, way)) is not None:
            found.add(rows.pointers.index(needed))
        if selects(case, way) or gains(case, phase, way):
            found.add(rows.flags(way.link)[0])
    pointers = tuple(sorted(found - {rows.mask_row}))
    adds = any(gains(case, phase, way) for way in ways(case.stencil, phase))
    words = layout(case, everywhere=True)
    types = (phase.collides and bool(words.conditions)) or (adds and bool(words.walls))
    return Used(pointers, int(rows.mask_row in found), int(types))
