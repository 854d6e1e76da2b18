"""What a propagation scheme is: a table that says, for each parity of the time step, where a cell finds and
leaves its populations.

From the table alone follow the kernel text, the initialiser, the gather, the bytes and the proof of safety.
The state at time t is the set of pre-collision populations f_i(x, t); every scheme stores that state somewhere,
and `Access.read` says where.

Walls. A link is cut where the neighbour along it lies behind a wall. Half-way bounce-back says that the
population that leaves along a cut link is the one that arrives next step along the opposite direction. In an
in-place scheme the population of a cut link therefore stays at one place for good: the place that parity 0
reads it from (no other cell ever uses it, since each place of one parity belongs to one link).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from lbmtune.lattice import Lattice, Vector, negate

HERE: Vector = (0, 0, 0)


class Place(NamedTuple):
    """A slot (which of the q arrays) at a cell, given by its offset from the cell that is updated.

    pointer: whether the slot is what the pointer of that number leads to (see `lbmtune.catalogue.pointer_swap`).
    """

    slot: int
    offset: Vector
    pointer: bool = False


class Access(NamedTuple):
    """Where one cell finds f_i before collision and leaves f_i after it.

    cut_read replaces read when the link that f_i arrives by is cut (it goes from the cell along -c_i);
    cut_write replaces write when the link that f_i leaves by is cut (along +c_i).
    """

    direction: int
    read: Place
    write: Place
    cut_read: Place
    cut_write: Place


@dataclass(frozen=True)
class Phase:
    """One pass over all cells: a row per direction that it moves.

    wall_term: whether the momentum of a moving wall is added when the bounced population is read or written, or
    in another pass; collides: whether the cell relaxes between reading and writing, or only moves populations;
    source, target: numbers of the lattices that are read and written; blockwise: each block of cells has storage of
    its own with a ring of ghost cells, refreshed before the pass, and all its cells have read before any of them
    writes; swaps: rows of what each cell moves as soon as it has collided, to and from neighbours that lie before it in
    lexicographic order (z, then y, then x), which asks for that order.
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
        """Whether cells have to be visited in lexicographic order."""
        return bool(self.swaps)

    @property
    def in_place(self) -> bool:
        """Whether the lattice that is read is the one that is written."""
        return self.source == self.target

    def places(self) -> Iterator[Place]:
        """Every place that the pass may touch."""
        for access in (*self.accesses, *self.swaps):
            yield from (access.read, access.write, access.cut_read, access.cut_write)

    @property
    def pointers(self) -> tuple[int, ...]:
        """Numbers of the pointers to slots that it takes, in order."""
        return tuple(sorted({place.slot for place in self.places() if place.pointer}))


def reach(phase: Phase) -> tuple[int, int]:
    """How far a cell reads along y and along z."""
    y, z = (max(abs(access.read.offset[axis]) for access in phase.accesses) for axis in (1, 2))
    return y, z


def shared_slot(phase: Phase) -> tuple[int, Place, Place] | None:
    """A slot that a pass touches at two places, with both, or None where every place belongs to one cell.

    None, too, where the lattice that is read is not written. Where each slot is touched at one offset only, what a
    cell reads is written by no other cell, so it may be read at any time before the cell itself writes it.
    """
    found: dict[int, Place] = {}
    for access in phase.accesses if phase.in_place else ():
        for place in (access.read, access.write):
            other = found.setdefault(place.slot, place)
            if other != place:
                return place.slot, other, place
    return None


def reads_along_x(scheme: Scheme, lattice: Lattice) -> bool:
    """Whether rows, in any order, read of neighbours along x: what lies beyond their ends is made ready for that."""
    phases = [scheme.phase(lattice, parity) for parity in range(scheme.period)]
    return not any(p.ordered for p in phases) and any(a.read.offset[0] for p in phases for a in p.accesses)


def keeps_links(phase: Phase, lattice: Lattice) -> bool:
    """Whether a cell leaves by each link at the place where it reads what arrives by that link, and nowhere else.

    True, too, where the lattice that is read is not written. The cell may then read a pair of directions again after it
    has left the others.
    """
    if not phase.in_place:
        return True
    arriving = {(a.direction, a.read, a.cut_read) for a in phase.accesses}
    leaving = {(lattice.opposite[a.direction], a.write, a.cut_write) for a in phase.accesses}
    return arriving == leaving and shared_slot(phase) is None


_Table = TypeVar("_Table")


def _remembered(table: Callable[[Lattice, int], _Table]) -> Callable[[Lattice, int], _Table]:
    """The same function, called once for each parity and lattice, which is known by its name."""
    known: dict[tuple[str, int], _Table] = {}

    def look_up(lattice: Lattice, parity: int) -> _Table:
        key = lattice.name, parity
        if key not in known:
            known[key] = table(lattice, parity)
        return known[key]

    return look_up


@dataclass(frozen=True)
class Scheme:
    """A propagation scheme: the passes of one time step, with a barrier for the whole lattice after each.

    lattices: copies of the q arrays; they exchange their roles after a step that ends in the second one;
    period: after how many steps the tables repeat; phase(lattice, parity): the pass that such a step begins with,
    which collides and says where the state is; moves(lattice, parity): those after it, which only move populations.
    """

    name: str
    title: str
    source: str
    lattices: int
    period: int
    phase: Callable[[Lattice, int], Phase]
    moves: Callable[[Lattice, int], tuple[Phase, ...]] | None = None

    def __post_init__(self) -> None:
        """Tables are worked out once: every rule asks for them at every point of a space."""
        object.__setattr__(self, "phase", _remembered(self.phase))
        object.__setattr__(self, "moves", self.moves and _remembered(self.moves))

    def passes(self, lattice: Lattice, parity: int) -> tuple[Phase, ...]:
        """All passes of a step, in order."""
        return (self.phase(lattice, parity), *(self.moves(lattice, parity) if self.moves else ()))

    def exchanges(self, lattice: Lattice) -> bool:
        """Whether the lattices exchange their roles after every step."""
        return self.passes(lattice, 0)[-1].target == 1

    @property
    def in_place(self) -> bool:
        """Whether one copy of the lattice is enough."""
        return self.lattices == 1


def not_reversed(scheme: Scheme, lattice: Lattice) -> int | None:
    """A direction whose population a skipped cell does not reverse, or None where it reverses all.

    Where a step finds f_i of a cell, the next step has to find what comes from that cell against c_i, unless the cell
    writes there in between.
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
    """The table of an in-place scheme from its read places alone.

    read_place(i, parity): where f_i is found. What arrives by a link is written back where its opposite
    was found, so each place is read and written by one cell. Populations of cut links keep their place of
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
    """The same scheme with its slots in another order, for bundles of `group` directions.

    Usually those of one plane of directions are next to one another: first the plane below along the lattice's last
    axis, then the one above, then the one that stays in the plane, each in the order of its rows. Neighbouring slots
    are then read from and written to neighbouring places. Bundles of half the directions are two: rest and one
    direction of each pair, and those opposite to them; all that Esoteric Twist reads at the cell itself is then in one
    of the two (the containers of Geller, in Geier and Schoenherr 2017, section 4.2).
    """

    def phase(lattice: Lattice, parity: int) -> Phase:
        return _renumbered(found.phase(lattice, parity), _bundle_order(lattice, group))

    def moves(lattice: Lattice, parity: int) -> tuple[Phase, ...]:
        return tuple(_renumbered(one, _bundle_order(lattice, group)) for one in found.passes(lattice, parity)[1:])

    return replace(found, phase=phase, moves=moves if found.moves else None)


def _bundle_order(lattice: Lattice, group: int) -> tuple[int, ...]:
    """The new number of each slot."""
    if group != (lattice.q + 1) // 2:
        return _plane_order(lattice)
    order = [0, *range(1, lattice.q, 2), *range(2, lattice.q, 2)]  # pairs are (1, 2), (3, 4), ...
    return tuple(order.index(i) for i in range(lattice.q))


def _plane_order(lattice: Lattice) -> tuple[int, ...]:
    """The new number of each slot."""
    last = lattice.dimensions - 1
    order = sorted(range(lattice.q), key=lambda i: _plane_key(lattice.velocities[i], last))
    return tuple(order.index(i) for i in range(lattice.q))


def _plane_key(c: Vector, last: int) -> tuple[bool, Vector]:
    return c[last] == 0, (c[2], c[1], c[0])


def _renumbered(phase: Phase, numbers: Sequence[int]) -> Phase:
    def renumbered(access: Access) -> Access:
        places = (place._replace(slot=numbers[place.slot]) for place in access[1:])
        return Access(access.direction, *places)

    accesses, swaps = (tuple(map(renumbered, rows)) for rows in (phase.accesses, phase.swaps))
    return replace(phase, accesses=accesses, swaps=swaps)


def upstream(lattice: Lattice, i: int) -> Vector:
    """Offset of the cell that f_i comes from."""
    return negate(lattice.velocities[i])
