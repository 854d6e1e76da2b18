"""Pointer swap: one table for all parities, if steps differ in slots only; pointers to the slots are exchanged.

Esoteric Twist and Esoteric Pull read each population at the same offset in every step, but after each step the slots of
opposite directions are exchanged. One kernel therefore serves every step if it takes pointers to the slots.
Source: Geier, Schoenherr 2017.
"""

from typing import NamedTuple

from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import Phase, Place, Scheme
from lbmtune.lattice import Lattice


class Exchange(NamedTuple):
    """A scheme with pointers. phase: the one table; slots[p][n]: slot of pointer n in a step of parity p.

    The slot of a place with a pointer is the number of the pointer. Places of cut links have slots.
    """

    phase: Phase
    slots: tuple[tuple[int, ...], ...]


def exchanges_slots(scheme: Scheme, lattice: Lattice) -> bool:
    """Return whether a step is one pass and the parities differ in slots only."""
    phases = scheme.phases(lattice)
    offsets = {tuple((one.read.offset, one.write.offset) for one in phase.accesses) for phase in phases}
    return scheme.period > 1 and scheme.moves is None and len(offsets) == 1


def exchange(scheme: Scheme, lattice: Lattice) -> Exchange:
    """Return the table and the slots of a scheme for which `exchanges_slots` is true."""
    parities = [scheme.passes(lattice, parity) for parity in range(scheme.period)]
    (first,), *_ = parities
    slots = tuple(_pointer_slots(first, phase, lattice.q) for (phase,) in parities)
    accesses = (one._replace(read=_by_pointer(one.read), write=_by_pointer(one.write)) for one in first.accesses)
    return Exchange(Phase(tuple(accesses), first.wall_term), slots)


def period_phases(config: KernelConfig, lattice: Lattice) -> list[Phase]:
    """Return the passes of all parities, in order, as a configuration's kernels contain them."""
    scheme = config.propagation
    return [exchange(scheme, lattice).phase] * scheme.period if config.pointer_swap else scheme.all_passes(lattice)


def _by_pointer(place: Place) -> Place:
    return place._replace(pointer=True)


def _pointer_slots(first: Phase, phase: Phase, q: int) -> tuple[int, ...]:
    pairs = {(a.read.slot, b.read.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    pairs |= {(a.write.slot, b.write.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    leads = dict(pairs)
    assert len(pairs) == len(set(leads.values())) == q, "each pointer leads to one slot of its own"
    return tuple(leads[n] for n in range(q))
