"""Find what crosses a face in the storage of both parts, after a step of each parity, and count its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from lbmtune.decomposition.boxes import Box, added
from lbmtune.decomposition.parts import Decomposition, Face
from lbmtune.lattice import negate


class Transfer(NamedTuple):
    """Values that are copied from one part to another.

    slot: number of the slot, or of the value; source, target: cells of the storage of both parts, equal in extents; a
    cell beyond an axis that a part spans is the one at its other end. direction, readers: of the populations, and the
    cells of the domain that read them; None for values that stay at their cells.
    """

    slot: int
    source: Box
    target: Box
    direction: int | None = None
    readers: Box | None = None


def transfers(found: Decomposition, face: Face, parity: int) -> Iterator[Transfer]:
    """Yield what crosses a face between a step of one parity and the next step.

    A population lies where the step has written it, and is read by the next step from the same place of the lattice:
    both parts have storage for it, one of them in its halo.
    """
    source, target = found.parts[face.source], found.parts[face.target]
    if found.crossed == "cells":
        for value, cells in face.crossings:
            yield Transfer(value, source.local(cells), target.local(cells.moved(face.image)))
        return
    stencil, scheme = found.case.stencil, found.config.propagation
    written = {one.direction: one.write for one in scheme.phase(stencil, parity).accesses}
    read = {one.direction: one.read for one in scheme.phase(stencil, (parity + 1) % scheme.period).accesses}
    for i, cells in face.crossings:
        c, (slot, offset, _) = stencil.velocities[i], written[i]
        assert (slot, offset) == (read[i].slot, added(c, read[i].offset)), "a link has one place"
        readers = cells.moved(added(face.image, c))
        there = target.local(readers.moved(read[i].offset))
        yield Transfer(slot, source.local(cells.moved(offset)), there, i, readers)


def sent_values(found: Decomposition, face: Face) -> int:
    """Return how many values cross a face: all values of the cells of a halo, or the populations of open links."""
    if found.crossed == "cells" or not found.case.geometry:
        return face.values
    from lbmtune.catalogue.boundaries.cut_links import OPEN, cut_kind, seen_by  # here: a box needs no arrays

    case, count = seen_by(found.case, found.config), 0
    for i, cells in face.crossings:
        c = found.case.stencil.velocities[i]
        readers = cells.moved(added(face.image, c))
        count += int((cut_kind(case, negate(c), readers.window) == OPEN).sum())
    return count


def runs(found: Decomposition, face: Face) -> int:
    """Return how many runs of adjacent elements cross a face, counted once: a copy moves one of them.

    Without cut links. Rows whose cells of a component are not adjacent count as a run for each group of cells.
    """
    if face not in found.counted_runs:
        found.counted_runs[face] = _runs(found, face)
    return found.counted_runs[face]


def _runs(found: Decomposition, face: Face) -> int:
    config, source = found.config, found.parts[face.source]
    extents = config.stored_extents(found.case, source.stored.extents)
    ghost, memory = config.frame(found.case.stencil).ghost, config.memory
    starts = set[tuple[int, int]]()
    for one in transfers(found, face, 0):
        x, y, z = (range(low + more, high + more) for low, high, more in zip(*one.source, ghost, strict=True))
        whole = found.crossed == "cells" and not memory.together and len(x) == extents.x
        each = len(x) if whole else memory.run_in(len(x)) or len(x)
        length = each * (extents.q if whole else 1)
        slot = 0 if whole else memory.component(one.slot, extents)
        first = x[:1] if whole else x[::each]
        ways = ((memory.along_x, first), (memory.along_y, y), (memory.along_z, z))
        along = [[way(cell, extents) for cell in cells] for way, cells in ways]
        starts |= {(slot + sum(place), length) for place in product(*along)}
    ends = {start + length for start, length in starts}
    return sum(start not in ends for start, _ in starts)


def face_bytes(found: Decomposition, face: Face) -> int:
    """Return the bytes that one part sends to another one in an exchange."""
    return sent_values(found, face) * found.config.stored.bytes


def sent_bytes(found: Decomposition) -> dict[int, int]:
    """Return the bytes that each part sends to others in an exchange, by its number."""
    sent = dict.fromkeys(range(len(found.parts)), 0)
    for face in found.faces:
        sent[face.source] += face_bytes(found, face)
    return sent
