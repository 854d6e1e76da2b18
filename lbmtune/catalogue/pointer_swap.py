"""Pointer swap: one table for all parities, if steps differ in slots only; pointers to the slots are exchanged.

Esoteric Twist and Esoteric Pull read each population at the same offset in every step, but after each step the slots of
opposite directions are exchanged. One kernel therefore serves every step if it takes pointers to the slots.
Source: Geier, Schoenherr 2017.
"""

from typing import NamedTuple

from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice


class Exchange(NamedTuple):
    """A scheme with pointers. phase: the one table; slots[p][n]: slot of pointer n in a step of parity p.

    The slot of a place with a pointer is the number of the pointer. Places of cut links have slots.
    """

    phase: Phase
    slots: tuple[tuple[int, ...], ...]


def exchanges_slots(scheme: Scheme, lattice: Lattice) -> bool:
    """Return whether a step is one pass and the parities differ in slots only."""
    parities = [scheme.phase(lattice, parity).accesses for parity in range(scheme.period)]
    offsets = {tuple((one.read.offset, one.write.offset) for one in accesses) for accesses in parities}
    return scheme.period > 1 and scheme.moves is None and len(offsets) == 1


def exchange(scheme: Scheme, lattice: Lattice) -> Exchange:
    """Return the table and the slots of a scheme for which `exchanges_slots` is true."""
    parities = [scheme.passes(lattice, parity) for parity in range(scheme.period)]
    (first,), *_ = parities
    slots = tuple(_pointer_slots(first, phase, lattice.q) for (phase,) in parities)
    return Exchange(Phase(tuple(map(_pointed, first.accesses)), first.wall_term), slots)


def phases_of(config: KernelConfig, lattice: Lattice, parity: int) -> tuple[Phase, ...]:
    """Return the passes of a step of that parity as a configuration's kernels contain them."""
    if config.pointer_swap:
        return (exchange(config.propagation, lattice).phase,)
    return config.propagation.passes(lattice, parity)


def period_phases(config: KernelConfig, lattice: Lattice) -> list[Phase]:
    """Return the phases of all parities, in order."""
    return [phase for parity in range(config.propagation.period) for phase in phases_of(config, lattice, parity)]


def _pointed(access: Access) -> Access:
    return access._replace(read=_by_pointer(access.read), write=_by_pointer(access.write))


def _by_pointer(place: Place) -> Place:
    return place._replace(pointer=True)


def _pointer_slots(first: Phase, phase: Phase, q: int) -> tuple[int, ...]:
    pairs = {(a.read.slot, b.read.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    pairs |= {(a.write.slot, b.write.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    leads = dict(pairs)
    assert len(pairs) == len(set(leads.values())) == q, "each pointer leads to one slot of its own"
    return tuple(leads[n] for n in range(q))
