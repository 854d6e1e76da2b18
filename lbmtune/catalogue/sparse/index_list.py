"""Indirect addressing: the rows of the index list, which holds pointers from fluid sites to nodes of other cells.

The table of the scheme determines the rows:

- If a place lies at the same cell whether its link is cut or not, all places of that offset share one pointer: seven
  pointers for Esoteric Twist on every lattice.
- If a place lies at another cell when its link is cut, its link has a pointer. The two highest bits say whether the
  link is cut, and whether by a moving wall. In in-place schemes the read of direction i and the write of its opposite
  have the same place, so they share the pointer.
- If all such places lie forward along the axes, the list may hold three pointers, one per axis, for every node; other
  nodes are found by pointer chasing, as the neighbour of a neighbour. If they lie on all sides (AA), it may hold six,
  provided that no link is cut: with implicit bounce-back all neighbours of a site are nodes, and no chain ends early.
- If a place stays in its cell, or shares its pointer, but has another slot when its link is cut, it has one bit in
  one more word of the site, the mask.
- Conditions of a site at faces, and the velocity of its wall if there are several, are in one more word, its type
  (`catalogue.problem.cell_types`).

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
CHAINS = {"esoteric-twist": "three_pointers", "aa": "six_pointers"}
"""Schemes whose pointers are chased, and what their lists then hold: those of Esoteric Twist all lead forward."""


class Linked(Protocol):
    """A place that may differ if its link is cut."""

    @property
    def open(self) -> Place: ...
    @property
    def cut(self) -> Place: ...
    @property
    def link(self) -> Vector: ...


class Way(NamedTuple):
    """A read or write of one population: its place if its link is open, and its place if it is cut."""

    verb: str
    direction: int
    open: Place
    cut: Place
    link: Vector


class Pointer(NamedTuple):
    """A row of the list: for each site, the node at offset `open` or, if `link` is cut, at offset `cut`.

    link: None if both are the same.
    """

    open: Vector
    cut: Vector
    link: Vector | None


@dataclass(frozen=True)
class NodeList:
    """The rows of the list: pointers, then the mask, whose bit n says whether link masked[n] is cut.

    pointers: those that passes need; moves: whether a mask of moving walls follows; chased: whether the list holds
    pointers of one cell only, for every node, and the others are found by pointer chasing; typed: whether a row of
    types comes last.
    """

    pointers: tuple[Pointer, ...]
    masked: tuple[Vector, ...]
    moves: bool
    chased: bool = False
    typed: bool = False

    @property
    def kept(self) -> tuple[Pointer, ...]:
        """Return the pointers that have a row."""
        return tuple(p for p in self.pointers if steps(p.open) == 1) if self.chased else self.pointers

    @property
    def rows(self) -> int:
        """Return 32-bit words per site; per node, if pointers are chased."""
        return self.type_row + self.typed

    @property
    def type_row(self) -> int:
        """Return the number of the row of types."""
        return len(self.kept) + bool(self.masked) + self.moves

    @property
    def mask_row(self) -> int:
        """Return the number of the row of the mask."""
        return len(self.kept)

    def row(self, found: Pointer) -> int:
        """Return the row of the last pointer that leads to a pointer's node."""
        return self.kept.index(_uncut(_last_unit(found.open)) if self.chased else found)

    def read_first(self, needed: Used) -> tuple[int, ...]:
        """Return the rows of which a pass reads the word of the site itself: pointers, mask and types."""
        own = [self.row(p) for n in needed.pointers if self.before(p := self.pointers[n]) is None]
        return (*own, *[self.mask_row] * needed.masks, *[self.type_row] * needed.types)

    def before(self, found: Pointer) -> Pointer | None:
        """Return the pointer to the node from which the last pointer starts, or None if that is the site itself."""
        if not self.chased or found in self.kept:
            return None
        x, y, z = (a - b for a, b in zip(found.open, _last_unit(found.open), strict=True))
        return _uncut((x, y, z))

    def flags(self, link: Vector) -> tuple[int, int]:
        """Return the row and the bit that say whether a link is cut."""
        for row, pointer in enumerate(self.pointers):
            if pointer.link == link:
                return row, CUT_BIT
        return self.mask_row, self.masked.index(link)


def _uncut(offset: Vector) -> Pointer:
    return Pointer(offset, offset, None)


def steps(offset: Vector) -> int:
    """Return the steps along the axes to an offset: the pointers of its chain."""
    return sum(map(abs, offset))


def _last_unit(offset: Vector) -> Vector:
    """Return the step along the first axis on which an offset is not zero."""
    axis = next(n for n, part in enumerate(offset) if part)
    x, y, z = (part if n == axis else 0 for n, part in enumerate(offset))
    return (x, y, z)


def ways(lattice: Lattice, phase: Phase) -> Iterator[Way]:
    """Yield all reads, whose link points along -c_i, then all writes, whose link points along c_i."""
    for a in phase.accesses:
        yield Way("read", a.direction, a.read, a.cut_read, negate(lattice.velocities[a.direction]))
    for a in phase.accesses:
        yield Way("write", a.direction, a.write, a.cut_write, lattice.velocities[a.direction])


def gains(case: Case, phase: Phase, way: Way) -> bool:
    """Return whether a moving wall may add momentum to the population of an access."""
    return way.verb == phase.wall_term and case.may_move(way.link)


def pointer(case: Case, way: Linked) -> Pointer | None:
    """Return the pointer to the places of an access, or None if they lie in the cell itself."""
    opened, cut = way.open.offset, way.cut.offset
    if may_cut(case, way.link) and opened != cut:
        return Pointer(opened, cut, way.link)
    return None if opened == HERE else Pointer(opened, opened, None)


def selects(case: Case, way: Linked) -> bool:
    """Return whether the slot depends on whether the link is cut; with a slot pointer, it does in at least one step."""
    return may_cut(case, way.link) and (way.open.pointer or way.open.slot != way.cut.slot)


@lru_cache(maxsize=256)
def node_list(case: Case, scheme: Scheme, chased: bool = False) -> NodeList:
    """Return the rows that the passes of a scheme need. chased: see `NodeList`."""
    every = [(phase, way) for phase in scheme.all_passes(case.stencil) for way in ways(case.stencil, phase)]
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
    """Return the rows of the list of a configuration."""
    return node_list(seen_by(case, config), config.propagation, config.chases)


class Used(NamedTuple):
    """The part of the list that a pass reads at every site. masks, types: words, 0 or 1 each."""

    pointers: tuple[int, ...]
    masks: int
    types: int


def used(case: Case, scheme: Scheme, phase: Phase) -> Used:
    """Return the part of the list that a pass reads, without the mask of moving walls, which only sites at one read."""
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
