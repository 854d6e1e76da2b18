"""A decomposition as data: parts with their halos and owners, and the faces between them with what crosses.

What crosses is read off the table of the scheme. A link from a cell w along c_i to a cell r = w + c_i of another part
carries f_i, whatever the scheme; the scheme says where the part of w has written it and where the part of r reads it.
Families whose values stay at their cells read a halo of several layers instead, with all values of a cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.parameter_text import written
from lbmtune.decomposition.boxes import Box, Cells, added, negative
from lbmtune.decomposition.cuts import Cut

Crossed = Literal["links", "cells"]
"""The kind of values that cross a face: populations along links, or all values of cells of the halo."""


@dataclass(frozen=True)
class Part:
    """Cells that one device updates.

    number: its place in the decomposition; device: number of its owner; box: its own cells; low, high: layers of the
    halo on its lower and on its upper sides, 0 at a side without a neighbour; spans: for each axis, whether it has all
    cells of the domain along it, so that a periodic axis closes within the part.
    """

    number: int
    device: int
    box: Box
    low: Cells
    high: Cells
    spans: tuple[bool, bool, bool]

    @property
    def stored(self) -> Box:
        """Return its own cells with those of the halo: the domain of its kernel."""
        return self.box.grown(self.low, self.high)

    def local(self, box: Box) -> Box:
        """Return cells of the domain as cells of its storage."""
        return box.moved(negative(self.stored.low))


class Crossing(NamedTuple):
    """Values of one number, a direction or the number of a value, of the cells of the source that send them."""

    value: int
    cells: Box


@dataclass(frozen=True)
class Face:
    """Cells that one part sends to another one. image: cells from the domain to its periodic image there."""

    source: int
    target: int
    image: Cells
    crossings: tuple[Crossing, ...]

    @property
    def values(self) -> int:
        """Return the number of values that cross, those of solid cells among them."""
        return sum(one.cells.cells for one in self.crossings)


@dataclass(frozen=True)
class Decomposition:
    """The parts of a case's domain, and the faces between them.

    depth: layers of the halo. The faces follow from the other fields.
    """

    case: Case
    config: KernelConfig
    cut: Cut
    depth: int
    parts: tuple[Part, ...]

    @property
    def crossed(self) -> Crossed:
        """Return what crosses its faces."""
        return crossed(self.config)

    @property
    def steps(self) -> int:
        """Return the time steps from one exchange to the next."""
        return self.depth if self.crossed == "cells" else 1

    @cached_property
    def faces(self) -> tuple[Face, ...]:
        """Return the faces through which something crosses, by target, then source."""
        return tuple(face for target in self.parts for face in self._into(target))

    @cached_property
    def counted_runs(self) -> dict[Face, int]:
        """Return the runs of adjacent elements that cross each face, as far as they have been counted."""
        return {}

    def _into(self, target: Part) -> Iterator[Face]:
        along = [self._near(axis, target.box.low[axis], target.box.high[axis]) for axis in range(3)]
        for number in sorted(along[0].keys() & along[1].keys() & along[2].keys()):
            source = self.parts[number]
            for x, y, z in product(*(near[number] for near in along)):
                crossings = tuple(self._crossings(source, target, (x, y, z)))
                if crossings and (source is not target or any((x, y, z))):
                    yield Face(number, target.number, (x, y, z), crossings)

    def _near(self, axis: int, first: int, last: int) -> Mapping[int, list[int]]:
        """Return the parts that lie near some cells along an axis, each with the images in which it does.

        An image lies beyond a periodic face; an axis that closes within the target has none. Cached, since parts of a
        grid have few limits along each axis.
        """
        found = self._found_near.get((axis, first, last))
        if found is None:
            cells = self.case.domain[axis]
            images = (0,) if last - first == cells or self.case.walled_across(axis) else (0, -cells, cells)
            found = {}
            for part in self.parts:
                low, high = part.box.low[axis] - self.depth, part.box.high[axis] + self.depth
                if near := [by for by in images if low + by < last and first < high + by]:
                    found[part.number] = near
            self._found_near[axis, first, last] = found
        return found

    @cached_property
    def _found_near(self) -> dict[tuple[int, int, int], Mapping[int, list[int]]]:
        return {}

    def _crossings(self, source: Part, target: Part, image: Cells) -> Iterator[Crossing]:
        if self.crossed == "cells":
            sent = self._sent(source, target.stored, target.spans, image)
            numbers = range(self.config.kept.values(self.case.stencil))
            yield from (Crossing(number, sent) for number in numbers if sent.cells)
            return
        for i, c in enumerate(self.case.stencil.velocities):
            sent = self._sent(source, target.box, target.spans, added(image, c))
            if any(c) and sent.cells:
                yield Crossing(i, sent)

    def _sent(self, source: Part, readers: Box, spans: tuple[bool, bool, bool], away: Cells) -> Box:
        """Return the cells of a source that are cells of `readers` once moved by `away`."""
        low, high = list(source.box.low), list(source.box.high)
        for axis in range(3):
            if spans[axis] and not self.case.walled_across(axis):
                continue  # the axis closes within the target: it has the neighbour of every cell
            low[axis] = max(low[axis], readers.low[axis] - away[axis])
            high[axis] = min(high[axis], readers.high[axis] - away[axis])
        return Box((low[0], low[1], low[2]), (high[0], high[1], high[2]))


def case_of(case: Case, part: Part) -> Case:
    """Return the case of the kernel of a part: its own cells and those of its halo, with the faces of the whole.

    Whatever a kernel does beyond the halo, at faces that are not those of the domain, changes cells of the halo alone.
    """
    domain = part.stored.extents
    if not case.geometry:
        return replace(case, domain=domain)
    first = (at % cells for at, cells in zip(part.stored.low, case.domain, strict=True))
    texts = {"domain": "x".join(map(str, case.domain)), "first": "x".join(map(str, first))}
    return replace(case, domain=domain, geometry=written("window", {"of": case.geometry, **texts}))


def crossed(config: KernelConfig) -> Crossed:
    """Return what crosses the faces of a configuration: values that stay at their cells are read from the halo."""
    return "cells" if config.place_source == "fixed" else "links"


def decomposed(
    case: Case, config: KernelConfig, cut: Cut, depth: int | None = None, devices: int | None = None
) -> Decomposition:
    """Return the parts of a case.

    depth: layers of the halo; None: as few as serve; devices: their number, each with parts that follow each other;
    None: one for each part. Raises InputError if a bisection has more parts than planes; `rules.refusal` says whether
    the rest is legal.
    """
    solid = None
    if case.geometry:
        from lbmtune.catalogue.problem.geometry import solid as solid_of  # here: a box needs no arrays

        solid = solid_of(case)
    layers, boxes = config.fused_steps if depth is None else depth, cut.boxes(case.domain, solid)
    owners = (number * (devices or len(boxes)) // len(boxes) for number in range(len(boxes)))
    numbered = enumerate(zip(owners, boxes, strict=True))
    parts = tuple(_part(case, number, owner, box, layers) for number, (owner, box) in numbered)
    return Decomposition(case, config, cut, layers, parts)


def _part(case: Case, number: int, device: int, box: Box, depth: int) -> Part:
    spans = tuple(extent == cells for extent, cells in zip(box.extents, case.domain, strict=True))
    low, high = [0, 0, 0], [0, 0, 0]
    for axis, whole in enumerate(spans):
        walled = case.walled_across(axis)
        low[axis] = 0 if whole or (walled and box.low[axis] == 0) else depth
        high[axis] = 0 if whole or (walled and box.high[axis] == case.domain[axis]) else depth
    return Part(
        number, device, box, (low[0], low[1], low[2]), (high[0], high[1], high[2]), (spans[0], spans[1], spans[2])
    )
