"""Predict a domain on several devices: launches on parts, the exchange between them, and what of it shows.

Time from one exchange to the next: launch on a part's own cells + what edges or redundant layers add + what the
interior does not hide of the exchange. Kernels that take planes compute own planes alone, others the halo along z, too.
Edges come before the interior, or beside it in a queue of higher priority; then their launches take no time of their
own. Of an exchange that is hidden the traffic of memory shows. Launches are those of `model.predict` on the cells that
they compute; a link is a measured curve. Nothing is fitted to lattice Boltzmann kernels on several devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import get_args

from lbmtune.decomposition.balance import loads
from lbmtune.decomposition.boxes import Cells
from lbmtune.decomposition.coupling import Coupling, Overlap, bands, coupling_refusal, takes_planes
from lbmtune.decomposition.parts import Decomposition, Part
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.model.machine.curves import copy_curve, enclosed
from lbmtune.model.machine.description import Links, Machine
from lbmtune.model.predict import MODELS, predict
from lbmtune.records import Resources

OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
_UNHIDDEN = Coupling(overlap="none")
_WAITS = 2
"""Waits for another device in an exchange: until it may be written to, and until it has written."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """Predicted time from one exchange to the next, in seconds.

    steps: time steps of it; own_s: launches on own cells of the part that takes longest; extra_s: what redundant layers
    or edges add; exchange_s: the exchange; shown_s: what of it no launch hides.
    """

    overlap: Overlap
    steps: int
    own_s: float
    extra_s: float
    exchange_s: float
    shown_s: float

    @property
    def total_s(self) -> float:
        """Return the time of all."""
        return self.own_s + self.extra_s + self.shown_s


@dataclass(frozen=True)
class _Work:
    """The work of a part: what it computes and sends.

    seconds: of a launch by the cells that it updates, solid ones in proportion; start_s: of a launch on nothing.
    """

    found: Decomposition
    part: Part
    sent: int
    seconds: Callable[[Cells], float]
    start_s: float

    @property
    def own_s(self) -> float:
        """Return the time of a launch on its own cells."""
        return self.seconds(self.part.box.extents)

    def launch_s(self, cells: Cells) -> float:
        """Return the time of a launch on other cells.

        It is at least a start and their share of a launch on own cells: a launch on few cells that comes again at once
        finds them in a cache, and here others run in between.
        """
        share = prod(cells) / self.part.box.cells
        return max(self.seconds(cells), self.start_s + share * (self.own_s - self.start_s))


def period(found: Decomposition, machine: Machine, overlap: Overlap, resources: Resources | None = None) -> Period:
    """Predict the time from one exchange to the next; that of the part that takes longest.

    machine: with links, unless there is one part. resources: of the compiled kernel; estimated if None.
    """
    seconds, sent = _seconds(found, machine, resources), sent_bytes(found)
    # parts that are alike take as long
    alike = {
        (load, part.box.extents, part.low, part.high, sent[part.number]): part
        for part, load in zip(found.parts, loads(found), strict=True)
    }
    start = MODELS[found.config.backend].launch_s(found.case, found.config, machine, 0.0)
    works = (
        _Work(found, part, sent[part.number], partial(seconds, fluid=load / part.box.cells), start)
        for (load, *_), part in alike.items()
    )
    return max((_of_part(work, machine, overlap) for work in works), key=lambda one: one.total_s)


def _seconds(found: Decomposition, machine: Machine, resources: Resources | None) -> Callable[..., float]:
    """Return the time of a launch by its cells and their fluid share.

    Fluid cells of a case with solid cells take as long as on the whole domain.
    """
    case, config = found.case, found.config

    @cache
    def speed(cells: Cells) -> float:
        return predict(replace(case, domain=cells), config, machine, resources).mlups * 1e6

    def seconds(cells: Cells, fluid: float) -> float:
        return prod(cells) * fluid * config.fused_steps / speed(case.domain if case.geometry else cells)

    return seconds


def _of_part(work: _Work, machine: Machine, overlap: Overlap) -> Period:
    found, part, own, links, exchange = work.found, work.part, work.own_s, machine.links, 0.0
    launches = found.steps // found.config.fused_steps
    if work.sent and links:
        exchange = exchange_s(links, work.sent) + _WAITS * (links.wait_s or 0.0)
    planes = takes_planes(found.case, found.config)
    coupling, (x, y, z) = Coupling(overlap=overlap), part.stored.extents
    if launches > 1 or coupling_refusal(found, coupling, planes=planes, reached=True):
        coupling = _UNHIDDEN
    edges, inner = bands(found, part, coupling)
    if not edges:
        coupling = _UNHIDDEN
    # without planes that are launched alone the halo is computed, too
    computed = launches * work.launch_s((x, y, len(inner) if planes and launches == 1 else z))
    hidden = work.launch_s((x, y, len(inner))) if edges else 0.0
    moved = (
        2 * work.sent / machine.copy_bytes_per_s if edges else 0.0
    )  # read where it is sent from, written where it arrives
    if coupling.overlap == "edge-first":
        computed = hidden + sum(work.launch_s((x, y, len(edge))) for edge in edges)
    elif coupling.overlap == "edge-priority":
        computed = own
    return Period(
        overlap=coupling.overlap,
        steps=found.steps,
        own_s=launches * own,
        extra_s=computed - launches * own,
        exchange_s=exchange,
        shown_s=min(exchange, max(moved, exchange - hidden)),
    )


def exchange_s(links: Links, sent: float) -> float:
    """Return the seconds in which a device sends some bytes and receives as many.

    A device sends to all neighbours through its own links, so their bytes add up. The curve is that of one direction;
    both at once share a little (`Links.both_ways_bytes_per_s`). Beyond the largest copy its bandwidth holds.
    """
    curve = copy_curve(links)
    (least, shortest), *_, (largest, longest) = (curve[0], *curve)
    slower = 2 * (largest / longest) / links.both_ways_bytes_per_s
    if sent >= largest:
        return slower * longest * sent / largest
    return slower * (enclosed(curve, sent) if sent > least else shortest)
