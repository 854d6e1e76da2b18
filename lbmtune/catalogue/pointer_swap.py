"""One table for all parities: where steps differ in slots alone, pointers to the slots are exchanged between them.

Esoteric Twist and Esoteric Pull find each population at the same offset in every step, but after each step the slots of
opposite directions have changed their roles. So one kernel serves every step if it takes pointers to the slots.
Source: Geier, Schoenherr 2017.
"""

from __future__ import annotations

from typing import NamedTuple

from lbmtune.catalogue.record import KernelConfig
from lbmtune.catalogue.schemes.scheme import Access, Phase, Place, Scheme
from lbmtune.lattice import Lattice, Vector


class Exchange(NamedTuple):
    """phase: the one table; slots[p][n]: where pointer n leads in a step of parity p.

    A place that is reached by a pointer has its number for a slot. Places of cut links keep their slots.
    """

    phase: Phase
    slots: tuple[tuple[int, ...], ...]


class Elsewhere(NamedTuple):
    """A population that a step of another parity finds, or leaves, where no other pointer leads."""

    direction: int
    verb: str
    offset: Vector
    other: Vector


def elsewhere(scheme: Scheme, lattice: Lattice) -> Elsewhere | None:
    """The first one; None where all steps have the same offsets."""
    first = scheme.phase(lattice, 0)
    for parity in range(1, scheme.period):
        for now, later in zip(first.accesses, scheme.phase(lattice, parity).accesses, strict=True):
            for verb, place, other in (("found", now.read, later.read), ("left", now.write, later.write)):
                if place.offset != other.offset:
                    return Elsewhere(now.direction, verb, place.offset, other.offset)
    return None


def exchanges_slots(scheme: Scheme, lattice: Lattice) -> bool:
    """Whether steps are one pass each that differ in slots alone."""
    return scheme.period > 1 and scheme.moves is None and elsewhere(scheme, lattice) is None


def exchange(scheme: Scheme, lattice: Lattice) -> Exchange:
    """The one table of a scheme whose steps differ in slots alone, each of which is one pass."""
    parities = [scheme.passes(lattice, parity) for parity in range(scheme.period)]
    (first,), *_ = parities
    slots = tuple(_led_to(first, phase, lattice.q) for (phase,) in parities)
    return Exchange(Phase(tuple(map(_pointed, first.accesses)), first.wall_term), slots)


def phases_of(config: KernelConfig, lattice: Lattice, parity: int) -> tuple[Phase, ...]:
    """The passes of a step of that parity as the text of its kernels has them."""
    if config.pointer_swap:
        return (exchange(config.propagation, lattice).phase,)
    return config.propagation.passes(lattice, parity)


def _pointed(access: Access) -> Access:
    return access._replace(read=_by_pointer(access.read), write=_by_pointer(access.write))


def _by_pointer(place: Place) -> Place:
    return place._replace(pointer=True)


def _led_to(first: Phase, phase: Phase, q: int) -> tuple[int, ...]:
    pairs = {(a.read.slot, b.read.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    pairs |= {(a.write.slot, b.write.slot) for a, b in zip(first.accesses, phase.accesses, strict=True)}
    leads = dict(pairs)
    assert len(pairs) == len(set(leads.values())) == q, "each pointer leads to one slot of its own"
    return tuple(leads[n] for n in range(q))
