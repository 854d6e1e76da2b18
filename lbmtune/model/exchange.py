"""Predict a domain on several devices: launches on parts, the exchange between them, and what of it shows.

Time from one exchange to the next: launches on a part's own cells + what edges, other blocks or redundant layers add +
what the interior does not hide of the exchange. Kernels that take planes compute own planes alone, others the halo
along z, too. Edges come before the interior, or beside it in a queue of higher priority: then all launches take the
time of one, and the interior hides what is left of that once the edges have ended. Of an exchange that is hidden the
traffic of memory shows. It is at least the time in which the host enqueues all of it. Launches are those of
`model.predict` on the cells that they compute; a link is a measured curve (`model.messages`). Nothing is fitted to
lattice Boltzmann kernels on several devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod, sqrt
from typing import Any, cast, get_args

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.exchange import MOST_BLOCKS
from lbmtune.decomposition.balance import loads
from lbmtune.decomposition.boxes import Cells
from lbmtune.decomposition.coupling import (
    Coupling,
    Overlap,
    bands,
    block_planes,
    coupling_refusal,
    sets_block_planes,
    stage_planes,
    takes_planes,
)
from lbmtune.decomposition.parts import Decomposition, Part
from lbmtune.decomposition.transfers import sent_bytes
from lbmtune.model.gpu.families import inputs_of
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs, chunk_planes, spared
from lbmtune.model.gpu.temporal_blocking.sharing import pace_of, room_of_senders
from lbmtune.model.machine.description import Machine
from lbmtune.model.messages import enqueuing_s, exchange_s
from lbmtune.model.predict import MODELS, predict
from lbmtune.model.rounds import Blocks, round_s
from lbmtune.records import Resources

OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
_OWN, _HALVINGS = (0.25, 4.0), 16
"""Limits within which launches take longer than they are predicted to, and steps to find how much."""
_WAVES = 20
"""Blocks, one after another, of which the last ones do not matter."""


@dataclass(frozen=True, kw_only=True)
class Period:
    """Predicted time from one exchange to the next, in seconds.

    steps: time steps of it; own_s: launches on own cells of the part that takes longest; extra_s: what redundant layers
    or edges add; exchange_s: the exchange; shown_s: what of it no launch hides; host_s: what the host takes to enqueue
    all of it, for which devices wait if that is longer.
    """

    overlap: Overlap
    steps: int
    own_s: float
    extra_s: float
    exchange_s: float
    shown_s: float
    host_s: float = 0.0

    @property
    def total_s(self) -> float:
        """Return the time of all."""
        return max(self.host_s, self.own_s + self.extra_s + self.shown_s)


@dataclass(frozen=True)
class _Work:
    """The work of a part: what it computes and sends.

    seconds: of a launch by the cells that it updates, solid ones in proportion, and by the planes of a block (0: those
    of the kernel); some_s: of one of several launches that together update its cells, if no launch waits for the host;
    start_s: of a launch on nothing, likewise; resources: of the kernel, if it was compiled; own: see `period`.
    """

    found: Decomposition
    part: Part
    sent: int
    seconds: Callable[[Cells, int], float]
    some_s: Callable[[Cells, int], float]
    start_s: float
    resources: Resources | None
    own: float

    @property
    def own_s(self) -> float:
        """Return the time of a launch on its own cells."""
        return self.seconds(self.part.box.extents, 0)

    def launch_s(self, planes: int, block: int) -> float:
        """Return the time of a launch on some planes of its storage.

        It is at least a start and their share of a launch on own cells: a launch on few cells that comes again at once
        finds them in a cache, and here others run in between.
        """
        cells = (*self.part.stored.extents[:2], planes)
        share = prod(cells) / self.part.box.cells
        own_s = self.seconds(self.part.box.extents, block)
        seconds = self.some_s if share < 1 else self.seconds
        return max(seconds(cells, block), own_s - (1 - share) * (own_s - self.start_s))


def period(
    found: Decomposition,
    machine: Machine,
    coupling: Coupling,
    resources: Resources | None = None,
    own: float = 1.0,
) -> Period:
    """Predict the time from one exchange to the next; that of the part that takes longest.

    Parts that have no such edges exchange after their launch. machine: with links, unless there is one part.
    resources: of the compiled kernel; estimated if None. own: how much longer launches take than they are predicted to,
    if one device was measured.
    """
    sent, config = sent_bytes(found), found.config
    knobs: dict[str, Any] = {} if BACKENDS[config.backend].shares_host else {"launch": "graph"}
    in_graph = replace(config, **knobs)
    seconds, some_s = (_seconds(found.case, one, machine, resources, own) for one in (config, in_graph))
    start_s = MODELS[config.backend].launch_s(found.case, in_graph, machine, 0.0)
    # parts that are alike take as long
    alike = {
        (load, part.box.extents, part.low, part.high, sent[part.number]): part
        for part, load in zip(found.parts, loads(found), strict=True)
    }
    works = (
        _Work(
            found,
            part,
            sent[part.number],
            partial(seconds, fluid=load / part.box.cells),
            partial(some_s, fluid=load / part.box.cells),
            start_s,
            resources,
            own,
        )
        for (load, *_), part in alike.items()
    )
    longest = max((_of_part(work, machine, coupling) for work in works), key=lambda one: one.total_s)
    if machine.links is None or not knobs:
        return longest
    by_call: dict[str, Any] = {"launch": "call"}
    call_s = MODELS[config.backend].launch_s(found.case, replace(config, **by_call), machine, 0.0)
    return replace(longest, host_s=enqueuing_s(found, machine.links, _legal(found, coupling), call_s))


def _seconds(
    case: Case, config: KernelConfig, machine: Machine, resources: Resources | None, own: float
) -> Callable[..., float]:
    """Return the time of a launch by its cells, the planes of a block, and their fluid share.

    Fluid cells of a case with solid cells take as long as on the whole domain.
    """

    @cache
    def speed(cells: Cells, block: int) -> float:
        knobs: dict[str, Any] = {"chunk_planes": block} if block else {}
        return predict(replace(case, domain=cells), replace(config, **knobs), machine, resources).mlups * 1e6

    def seconds(cells: Cells, block: int, fluid: float) -> float:
        return own * prod(cells) * fluid * config.fused_steps / speed(case.domain if case.geometry else cells, block)

    return seconds


def _legal(found: Decomposition, coupling: Coupling) -> Coupling:
    """Return a coupling, or the one without overlap if it is not legal."""
    planes = takes_planes(found.case, found.config)
    if coupling_refusal(found, coupling, planes=planes, reached=True):
        return replace(coupling, overlap="none", edge_planes=0, block_planes=0)
    return coupling


def _of_part(work: _Work, machine: Machine, coupling: Coupling) -> Period:
    found, part, coupling = work.found, work.part, _legal(work.found, coupling)
    planes = takes_planes(found.case, found.config)
    if not bands(found, part, coupling).edges:
        coupling = replace(coupling, overlap="none", edge_planes=0)
    edges, inner = bands(found, part, coupling)
    block = block_planes(found, part, coupling) if planes and sets_block_planes(found.config) else 0
    launches = found.steps // found.config.fused_steps
    # without planes that are launched alone the halo is computed, too
    whole = [
        work.launch_s(len(stage_planes(found, part, later)) if planes else part.stored.extents[2], block)
        for later in range(launches)
    ]
    idle, beside = 0.0, 0.0
    if work.sent and machine.links:
        idle, beside = (
            exchange_s(found, part, machine.links, coupling.transport, work.start_s, busy=busy)
            for busy in (False, bool(edges))
        )
    # what is sent is read, and written where it arrives
    moved = 2 * work.sent / machine.copy_bytes_per_s if edges else 0.0
    if block and machine.calibration:
        return _of_blocks(work, machine, coupling, idle, beside, moved)
    last, hidden = whole[0], 0.0
    if edges:
        hidden = last - sum(work.launch_s(len(edge), block) for edge in edges)
    if coupling.overlap == "edge-first":
        hidden = work.launch_s(len(inner), block)
        last = hidden + sum(work.launch_s(len(edge), block) for edge in edges)
        if work.sent and machine.links:  # which nothing hides, though messages came long before
            last += machine.links.met_wait_s or 0.0
    return Period(
        overlap=coupling.overlap,
        steps=found.steps,
        own_s=launches * work.own_s,
        extra_s=last + sum(whole[1:]) - launches * work.own_s,
        exchange_s=idle,
        # what is left once the launches have ended goes on between idle devices
        shown_s=min(idle, max(moved, idle * (1 - max(hidden, 0.0) / beside))) if beside else 0.0,
    )


def _of_blocks(work: _Work, machine: Machine, coupling: Coupling, idle: float, beside: float, moved: float) -> Period:
    """Return the period of a kernel of a few long blocks, which are simulated (`model.rounds`).

    A block takes as long for a plane as is predicted for a part that is so high that all room is filled many times.
    idle, beside: seconds of the exchange between idle devices, and beside launches; moved: of its traffic.
    """
    found, part, links = work.found, work.part, machine.links
    config = cast("TemporalBlocking", found.config)
    inputs = inputs_of(found.case, config, machine, work.resources)
    room = machine.multiprocessors * max(1, inputs.blocks)
    stages = found.steps // config.fused_steps
    edges, inner = bands(found, part, coupling)
    block = block_planes(found, part, coupling)

    def launch(cells: Cells, planes: int, plane_s: float) -> Blocks:
        columns = config.blocks(replace(found.case, domain=cells))
        chunks = chunk_planes(cells[2], -(-cells[2] // planes), config)
        around = 2 * config.steps - spared(found.case, config)
        return Blocks(tuple((columns[0] * columns[1], plane_s * (chunk + around)) for chunk in chunks))

    pace = pace_of(cast("TemporalInputs", inputs), room, work.own)
    alone = partial(
        round_s, room, pace=pace, inner=None, edges=0, first=False, exchange_s=0.0, packs=None, wait_s=0.0, start_s=0.0
    )
    x, y, _ = part.stored.extents
    columns = prod(config.blocks(replace(found.case, domain=(x, y, 1))))
    high = (x, y, config.chunk_planes * -(-_WAVES * room // columns))
    full_s = work.seconds(high, 0) / alone([launch(high, config.chunk_planes, 1.0)])
    of = partial(launch, planes=block, plane_s=full_s)
    chain = [of((x, y, len(stage_planes(found, part, later)))) for later in reversed(range(stages))]
    if edges:
        chain = [*chain[:-1], *(of((x, y, len(edge))) for edge in edges)]
    waits = 2 * (links.wait_s or 0.0) if links else 0.0
    sends = [face for face in found.faces if face.source == part.number]
    packs = room_of_senders(inputs, MOST_BLOCKS * len(sends)) if coupling.transport == "pack" and idle else 0

    def with_exchange(sent: float) -> float:
        return round_s(
            room,
            chain,
            of((x, y, len(inner))) if edges else None,
            edges=len(edges),
            first=coupling.overlap == "edge-first",
            exchange_s=waits / 2 if sent and packs else sent,
            packs=Blocks(((packs, max(0.0, sent - waits)),)) if sent and packs else None,
            wait_s=waits / 2,
            start_s=work.start_s,
            pace=pace,
        )

    found_s = [with_exchange(0.0), with_exchange(idle)]
    if beside > idle:
        hidden = 1 - min(1.0, max(0.0, found_s[1] - found_s[0]) / idle)
        found_s[1] = with_exchange(idle + hidden * (beside - idle))
    own_s = stages * alone([launch(part.box.extents, config.chunk_planes, full_s)])
    return Period(
        overlap=coupling.overlap,
        steps=found.steps,
        own_s=own_s,
        extra_s=min(found_s) - own_s,  # edges that wait may let blocks of the interior fill the room better
        exchange_s=idle,
        shown_s=max(moved, found_s[1] - min(found_s)),
    )


def measured_over_predicted(
    alone: Decomposition, machine: Machine, launch_s: float, resources: Resources | None = None
) -> float:
    """Return how much longer launches of one device take than they are predicted to (`period`).

    alone: the domain of one device as its only part; launch_s: what a launch was measured to take; resources: of the
    compiled kernel; estimated if None.
    """
    low, high = _OWN
    for _ in range(_HALVINGS):
        own = sqrt(low * high)
        shorter = period(alone, machine, Coupling(overlap="none"), resources, own).total_s < launch_s
        low, high = (own, high) if shorter else (low, own)
    return sqrt(low * high)
