"""Propagation schemes as tables: for each parity of the time step, where a cell reads and writes its populations.

Kernel text, initialiser, gather, bytes and the proof that no race occurs all follow from the table. The state at time
t is the set of pre-collision populations f_i(x, t); every scheme stores that state, and `Access.read` says where.

Walls. A link is cut if a wall crosses it. Half-way bounce-back: the population that leaves along a cut link arrives in
the next step along the opposite direction. In an in-place scheme it therefore always stays at one place: the one from
which parity 0 reads it. No other cell uses that place, since each place of one parity belongs to one link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from lbmtune.lattice import Lattice, Vector, negate

HERE: Vector = (0, 0, 0)


class Place(NamedTuple):
    """A slot (one of the q arrays) at a cell, given by its offset from the cell that is updated.

    pointer: whether slot is the number of a pointer to a slot (`lbmtune.catalogue.pointer_swap`).
    """

    slot: int
    offset: Vector
    pointer: bool = False


class Access(NamedTuple):
    """The places from which one cell reads f_i before collision and to which it writes f_i afterwards.

    cut_read replaces read if the link by which f_i arrives is cut (it goes from the cell along -c_i);
    cut_write replaces write if the link by which f_i leaves is cut (along +c_i).
    """

    direction: int
    read: Place
    write: Place
    cut_read: Place
    cut_write: Place


@dataclass(frozen=True)
class Phase:
    """One pass over all cells: an access per direction that it moves.

    wall_term: whether the momentum of a moving wall is added on reading or writing the bounced population, or in
    another pass; collides: whether the cell collides between reading and writing; source, target: numbers of the
    lattices that are read and written; blockwise: each block of cells has its own storage with a layer of ghost cells,
    refreshed before the pass, and all its cells read before any writes; swaps: exchanges of a cell right after its
    collision with neighbours before it in lexicographic order (z, then y, then x), which the pass must then follow.
    """

    accesses: tuple[Access, ...]
    wall_term: Literal["read", "write", "none"]
    collides: bool = True
    source: int = 0
    target: int = 0
    blockwise: bool = False
    swaps: tuple[Access, ...] = ()

    @property
    def ordered(self) -> bool:
        """Return whether cells must be updated in lexicographic order."""
        return bool(self.swaps)

    @property
    def in_place(self) -> bool:
        """Return whether the pass reads and writes the same lattice."""
        return self.source == self.target

    def places(self) -> Iterator[Place]:
        """Yield every place that the pass may read or write."""
        for access in (*self.accesses, *self.swaps):
            yield from (access.read, access.write, access.cut_read, access.cut_write)

    @property
    def pointers(self) -> tuple[int, ...]:
        """Return the numbers of the pointers to slots that the pass takes, in order."""
        return tuple(sorted({place.slot for place in self.places() if place.pointer}))


def reach(phase: Phase) -> tuple[int, int]:
    """Return the largest offsets along y and along z at which a cell reads."""
    y, z = (max(abs(access.read.offset[axis]) for access in phase.accesses) for axis in (1, 2))
    return y, z


def shared_slot(phase: Phase) -> tuple[int, Place, Place] | None:
    """Return a slot that a pass accesses at two places, with both, or None if every place belongs to one cell.

    None also if the pass is not in place. If each slot is accessed at one offset only, no other cell writes what a cell
    reads, so it may be read at any time before the cell itself writes it.
    """
    found: dict[int, Place] = {}
    for access in phase.accesses if phase.in_place else ():
        for place in (access.read, access.write):
            other = found.setdefault(place.slot, place)
            if other != place:
                return place.slot, other, place
    return None


def reads_along_x(scheme: Scheme, lattice: Lattice) -> bool:
    """Return whether rows, in any order, read neighbours along x, so that cells beyond their ends are filled first."""
    phases = scheme.phases(lattice)
    return not any(p.ordered for p in phases) and any(a.read.offset[0] for p in phases for a in p.accesses)


def keeps_links(phase: Phase, lattice: Lattice) -> bool:
    """Return whether a cell writes each link's population only to the place where it reads the one that arrives.

    True also if the pass is not in place. The cell may then read a pair of directions again after it has written the
    others.
    """
    if not phase.in_place:
        return True
    arriving = {(a.direction, a.read, a.cut_read) for a in phase.accesses}
    leaving = {(lattice.opposite[a.direction], a.write, a.cut_write) for a in phase.accesses}
    return arriving == leaving and shared_slot(phase) is None


_Table = TypeVar("_Table")


def _cached(table: Callable[[Lattice, int], _Table]) -> Callable[[Lattice, int], _Table]:
    """Return the function with its results cached by lattice name and parity."""
    results: dict[tuple[str, int], _Table] = {}

    def look_up(lattice: Lattice, parity: int) -> _Table:
        key = lattice.name, parity
        if key not in results:
            results[key] = table(lattice, parity)
        return results[key]

    return look_up


@dataclass(frozen=True)
class Scheme:
    """A propagation scheme: the passes of one time step, with a barrier for the whole lattice after each.

    lattices: copies of the q arrays; they are swapped after a step that ends in the second one; period: steps after
    which the tables repeat; phase(lattice, parity): the first pass of a step, which collides and defines where the
    state lies; moves(lattice, parity): the passes after it, which only move populations.
    """

    name: str
    title: str
    source: str
    lattices: int
    period: int
    phase: Callable[[Lattice, int], Phase]
    moves: Callable[[Lattice, int], tuple[Phase, ...]] | None = None

    def __post_init__(self) -> None:
        """Cache the tables: the rules look them up for every configuration of a search space."""
        object.__setattr__(self, "phase", _cached(self.phase))
        object.__setattr__(self, "moves", self.moves and _cached(self.moves))

    def passes(self, lattice: Lattice, parity: int) -> tuple[Phase, ...]:
        """Return all passes of a step, in order."""
        return (self.phase(lattice, parity), *(self.moves(lattice, parity) if self.moves else ()))

    def phases(self, lattice: Lattice) -> list[Phase]:
        """Return the first pass of a step of each parity."""
        return [self.phase(lattice, parity) for parity in range(self.period)]

    def all_passes(self, lattice: Lattice) -> list[Phase]:
        """Return the passes of all parities, in order."""
        return [one for parity in range(self.period) for one in self.passes(lattice, parity)]

    def exchanges(self, lattice: Lattice) -> bool:
        """Return whether the two lattices are swapped after every step."""
        return self.passes(lattice, 0)[-1].target == 1

    @property
    def in_place(self) -> bool:
        """Return whether the scheme needs one copy of the lattice only."""
        return self.lattices == 1


def not_reversed(scheme: Scheme, lattice: Lattice) -> int | None:
    """Return a direction whose population is not reversed in a cell that is skipped, or None if all are.

    The place from which a step reads f_i of a cell must be the one from which the next step reads the population that
    comes from that cell against c_i, unless the cell writes there in between.
    """
    for parity in range(scheme.period):
        now, later = (scheme.passes(lattice, (parity + n) % scheme.period) for n in (0, 1))
        for access in now[0].accesses:
            i, j = access.direction, lattice.opposite[access.direction]
            there = later[0].accesses[j].read
            x, y, z = (a - b for a, b in zip(there.offset, lattice.velocities[i], strict=True))
            if len(now) > 1 or not now[0].in_place or access.read != Place(there.slot, (x, y, z)):
                return i
    return None


def in_place_phase(lattice: Lattice, read_place: Callable[[int, int], Place], parity: int) -> Phase:
    """Return the pass of an in-place scheme from its read places alone.

    read_place(i, parity): the place of f_i. The population that leaves by a link is written to the place from which the
    one that arrived by it was read, so each place is used by one cell. Populations of cut links stay at their place of
    parity 0.
    """
    opposite = lattice.opposite

    def access(i: int) -> Access:
        return Access(
            i,
            read=read_place(i, parity),
            write=read_place(opposite[i], parity),
            cut_read=read_place(i, 0),
            cut_write=read_place(opposite[i], 0),
        )

    return Phase(tuple(access(i) for i in range(lattice.q)), wall_term="read")


@lru_cache
def bundled(found: Scheme, group: int) -> Scheme:
    """Return the scheme with its slots reordered for bundles of `group` directions.

    Usually the directions of one plane follow each other: first the plane below along the lattice's last axis, then the
    one above, then the one in the plane, each in the order of its rows. Neighbouring slots are then read from and
    written to neighbouring places. If group is (q + 1) / 2, there are two bundles: rest and one direction of each pair,
    and their opposites; one of the two then holds all that Esoteric Twist reads at the cell itself (the containers of
    Geller, in Geier and Schoenherr 2017, section 4.2).
    """

    def phase(lattice: Lattice, parity: int) -> Phase:
        return _renumbered(found.phase(lattice, parity), _bundle_order(lattice, group))

    def moves(lattice: Lattice, parity: int) -> tuple[Phase, ...]:
        return tuple(_renumbered(one, _bundle_order(lattice, group)) for one in found.passes(lattice, parity)[1:])

    return replace(found, phase=phase, moves=moves if found.moves else None)


def _bundle_order(lattice: Lattice, group: int) -> tuple[int, ...]:
    """Return the new number of each slot."""
    last, velocities = lattice.dimensions - 1, lattice.velocities
    order = sorted(range(lattice.q), key=lambda i: (velocities[i][last] == 0, velocities[i][::-1]))
    if group == (lattice.q + 1) // 2:
        order = [0, *range(1, lattice.q, 2), *range(2, lattice.q, 2)]  # pairs are (1, 2), (3, 4), ...
    return tuple(order.index(i) for i in range(lattice.q))


def _renumbered(phase: Phase, numbers: Sequence[int]) -> Phase:
    def renumbered(access: Access) -> Access:
        places = (place._replace(slot=numbers[place.slot]) for place in access[1:])
        return Access(access.direction, *places)

    accesses, swaps = (tuple(map(renumbered, rows)) for rows in (phase.accesses, phase.swaps))
    return replace(phase, accesses=accesses, swaps=swaps)


def upstream(lattice: Lattice, i: int) -> Vector:
    """Return the offset of the cell from which f_i arrives."""
    return negate(lattice.velocities[i])
