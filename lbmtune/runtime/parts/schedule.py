"""The queues in which parts of a domain compute and exchange, and what waits for what.

Each part has a queue for its edges, of a higher priority, one for its interior, and one for each message that it sends.
Whatever reads or overwrites what another queue writes waits for a mark of that queue:

    edges      of a launch wait for the messages to and from the part before it, and for the interior of the last launch
    interior   waits for the edges of the launch before, and with overlap `edge-first` for those of the same launch
    messages   wait for the edges at both ends

Edges are as thick as the halo at least. So all that is sent comes from edges, and nothing in the interior is read or
written by a message.

A round is what lies between two exchanges. A halo of several times the layers that a launch reads has as many launches
in it: each computes, redundantly, the planes of the halo that later ones read, and the last one alone has edges.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any, Literal, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Queue
from lbmtune.decomposition.coupling import Coupling, bands, block_planes, sets_block_planes, stage_planes
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.parts.messages import joined
from lbmtune.runtime.parts.transports import End, Way
from lbmtune.runtime.simulation import Bound

Array = Any
Sends = Callable[[list[End], int], list[Way]]
"""Returns the ways of messages between the ends of the parts of this process, before a step of a parity."""
Kept = Literal["all", "launches", "exchange"]
"""Shares of a step that may be enqueued; one of them alone takes another time, and leaves a wrong state."""
GRAPH_ROUNDS = 32
"""Most rounds in a graph."""


class Traffic(NamedTuple):
    """The messages of the parts of this process.

    ends: places of the parts that send and receive each of them, in the order of those parts; ways: makes them.
    """

    ends: list[tuple[int, int]]
    ways: Sends


class Schedule:
    """The launches and messages of the parts of this process for one coupling.

    planes: whether the kernel takes planes; poisons: whether halos are poisoned before each exchange.
    """

    def __init__(
        self, whole: DecomposedSimulation, coupling: Coupling, traffic: Traffic, *, planes: bool, poisons: bool
    ) -> None:
        """Make the queues of all devices."""
        self._whole, self.coupling, self._traffic = whole, coupling, traffic
        self.decomposition, self.parts, self.devices = whole.decomposition, whole.parts, whole.devices
        self._planes, self._poisons = planes, poisons
        through_host = coupling.transport == "host"
        self._edges = [device.queue(first=True) for device in self.devices]
        self._inner = [device.queue() for device in self.devices]
        self._senders = [self.devices[source].queue(first=True) for source, _ in traffic.ends]
        self._receivers = [self.devices[target].queue(first=True) for _, target in traffic.ends if through_host]
        self._queues: list[Queue] = [*self._edges, *self._inner, *self._senders, *self._receivers]
        self._stages = self.decomposition.steps // self.decomposition.config.fused_steps
        self._launches = [self._planned(number) for number in range(len(self.parts))]
        self._ways: dict[int, list[Way]] = {}
        self._poisoned: dict[tuple[int, int], Array] = {}
        self._graphs: dict[tuple[int, Kept], Callable[[], None]] = {}
        self._joined = False
        self._forget()

    def enqueue(self, rounds: int, kept: Kept) -> None:
        """Enqueue rounds, as graphs if the coupling has them and a cycle begins."""
        self._make_ways()
        while rounds:
            together = self._together(rounds)
            if together:
                self._replay(self._graph(together, kept))
            else:
                self._part()
                self._enqueue_one(self.parts[0].place, kept)
            for one in self.parts:
                one.advance(self._stages * (together or 1))
            rounds -= together or 1

    def prepare(self, rounds: int, kept: Kept) -> None:
        """Make what rounds from the beginning of a cycle need, so that nothing is made while timed."""
        self._make_ways()
        while together := self._together(rounds):
            self._graph(together, kept)
            rounds -= together

    def exchange_s(self, busy: int, rounds: int = 16) -> float:
        """Return the seconds of an exchange between idle parts, by events; the state is wrong then.

        busy: rounds that keep all devices at work until the exchanges are enqueued. These begin together: a device
        that was late would keep the others waiting.
        """
        place, first = self.parts[0].place, self._edges[0]
        self._make_ways()
        self._keep_busy(busy)
        marks = []
        for n in range(rounds + 1):
            self._enqueue_one(place, "exchange")
            if n in (0, rounds):
                _wait(first, *self._sent_marks[0])
                marks.append(first.mark(timed=True))
        return first.seconds(*marks) / rounds

    def _keep_busy(self, rounds: int) -> None:
        """Enqueue the launches of some rounds, behind which all queues wait for each other.

        As graphs, whichever way the coupling launches: call by call the host may be slower than the devices.
        """
        together = 0 if self._poisons or self.parts[0].place else GRAPH_ROUNDS // self._cycle * self._cycle
        if together:
            for _ in range(-(-rounds // together)):
                self._replay(self._graph(together, "launches"))
        else:
            self._part()
            for _ in range(rounds):
                self._enqueue_one(self.parts[0].place, "launches")
            self._join()
            self._joined = True
        self._part()

    def _enqueue_one(self, place: int, kept: Kept) -> None:
        """Enqueue a round whose first launch is at a place of a cycle."""
        last = self._last_place(place)
        if kept == "exchange":
            for number in range(len(self.parts)):
                self._launch(number, [], [], last)
        else:
            for stage in range(self._stages):
                for number, stages in enumerate(self._launches):
                    at = (place + stage) % self.parts[number].places
                    self._launch(number, *stages[stage][at], last if stage == self._stages - 1 else None)
        if kept != "launches":
            self._send(last)

    def _launch(self, number: int, edges: list[Bound], inner: list[Bound], last: int | None) -> None:
        """Enqueue the launches of a part: on its edges, then on its other planes.

        last: the place of the cycle, if an exchange follows.
        """
        part, first, second = self.parts[number], self._edges[number], self._inner[number]
        before = self._edge_marks[number]
        _wait(first, *self._sent_marks[number], self._inner_marks[number])
        first.run(partial(part.enqueue, edges))
        if self._poisons and last is not None:
            first.run(partial(self._poison, number, last))
        self._edge_marks[number] = first.mark()
        if inner:
            _wait(second, self._edge_marks[number] if self.coupling.overlap == "edge-first" else before)
            second.run(partial(part.enqueue, inner))
            self._inner_marks[number] = second.mark()

    def _send(self, place: int) -> None:
        """Enqueue all messages after the launches at a place of a cycle."""
        self._sent_marks = self._no_marks
        for number, (ends, way) in enumerate(zip(self._traffic.ends, self._ways[place], strict=True)):
            queue = self._senders[number]
            _wait(queue, *(self._edge_marks[end] for end in ends))
            queue.run(way.send)
            if way.receive:
                sent, queue = queue.mark(), self._receivers[number]
                queue.wait(sent)
                queue.run(way.receive)
            mark = queue.mark()
            for part in set(ends):
                self._sent_marks[part].append(mark)

    def _poison(self, number: int, place: int) -> None:
        """Poison the halo of a part, but for what it sends from there."""
        part = self.parts[number]
        parity = part.parity_at((place + 1) % part.places)
        if (number, parity) not in self._poisoned:
            source = self._whole.own[number].number
            sent = [one.taken for one in self._whole.messages_before(parity) if one.source == source]
            kept = np.setdiff1d(self._whole.halos[number], joined(sent))
            self._poisoned[number, parity] = part.xp.asarray(kept)
        self._state_after(number, place)[self._poisoned[number, parity]] = part.program.config.stored.poison

    def _planned(self, number: int) -> list[list[tuple[list[Bound], list[Bound]]]]:
        """Return the launches of a part for each stage of a round, and for each place of a cycle.

        They are those on edges, and on the planes between them. All planes are those of an edge without overlap, and
        before the last stage.
        """
        part, of, found = self.parts[number], self._whole.own[number], self.decomposition
        with self.devices[number].current():
            if not self._planes:
                return [[(step, []) for step in part.whole_plan]] * self._stages
            block = block_planes(found, of, self.coupling) if sets_block_planes(found.config) else 0
            whole = [part.plan_of(stage_planes(found, of, later), block) for later in reversed(range(self._stages))]
            cut = bands(found, of, self.coupling)
            edges, inner = [part.plan_of(planes, block) for planes in cut.edges], part.plan_of(cut.inner, block)
        stages: list[list[tuple[list[Bound], list[Bound]]]] = [[(step, []) for step in plan] for plan in whole]
        if edges:
            stages[-1] = [([one for edge in edges for one in edge[place]], step) for place, step in enumerate(inner)]
        return stages

    def _make_ways(self) -> None:
        """Make the ways of messages, and wait until what they read lies on the devices.

        Queues do not wait for uploads of tables, and none of them may be made while a graph is recorded.
        """
        first = self.parts[0]
        ends = {self._last_place(first.place + n * self._stages) for n in range(self._cycle)}
        if missing := ends - self._ways.keys():
            for place in missing:
                self._ways[place] = self._ways_after(place)
            self._whole.synchronize()

    def _ways_after(self, place: int) -> list[Way]:
        """Return the ways of the messages after the launches at a place of a cycle."""
        first = self.parts[0]
        states = [self._state_after(number, place) for number in range(len(self.parts))]
        ends = [End(*each) for each in zip(self.parts, states, self.devices, strict=True)]
        return self._traffic.ways(ends, first.parity_at((place + 1) % first.places))

    def _state_after(self, number: int, place: int) -> Array:
        """Return the buffer that holds the state of a part after the launches at a place of a cycle."""
        part = self.parts[number]
        return part.state_at((place + 1) % part.places)

    def _last_place(self, place: int) -> int:
        """Return the place in a cycle of the last launch of a round whose first one is at a place."""
        return (place + self._stages - 1) % self.parts[0].places

    @property
    def _cycle(self) -> int:
        """The rounds after which a round begins at the same place of a cycle of launches again."""
        return self.parts[0].places // gcd(self.parts[0].places, self._stages)

    def _together(self, rounds: int) -> int:
        """Return how many of the next rounds one graph enqueues; 0: none."""
        if self.coupling.launching != "graph" or self._poisons or self.parts[0].place:
            return 0
        return min(rounds // self._cycle * self._cycle, GRAPH_ROUNDS)

    def _graph(self, rounds: int, kept: Kept) -> Callable[[], None]:
        """Return a function that enqueues rounds from the beginning of a cycle in the first queue."""
        if (rounds, kept) not in self._graphs:
            recorded = partial(self._forked, rounds, kept)
            self._graphs[rounds, kept] = self.devices[0].recorded_in(self._queues[0], recorded)
        return self._graphs[rounds, kept]

    def _forked(self, rounds: int, kept: Kept) -> None:
        """Enqueue rounds in all queues, which begin behind the first one and end before its later work."""
        self._fork()
        for n in range(rounds):
            self._enqueue_one(n * self._stages % self.parts[0].places, kept)
        self._join()

    def _replay(self, graph: Callable[[], None]) -> None:
        """Enqueue a graph behind all that is enqueued."""
        if not self._joined:
            self._join()
        graph()
        self._joined = True

    def _part(self) -> None:
        """Let all queues wait for the graphs that are enqueued in the first one."""
        if self._joined:
            self._fork()
        self._joined = False

    def _fork(self) -> None:
        mark = self._queues[0].mark()
        for one in self._queues[1:]:
            one.wait(mark)
        self._forget()

    def _join(self) -> None:
        for one in self._queues[1:]:
            self._queues[0].wait(one.mark())
        self._forget()

    def _forget(self) -> None:
        """Forget all marks: every queue waits for what they stand for."""
        self._edge_marks: list[Any] = [None] * len(self.parts)
        self._inner_marks: list[Any] = [None] * len(self.parts)
        self._sent_marks = self._no_marks

    @property
    def _no_marks(self) -> list[list[Any]]:
        return [[] for _ in self.parts]


def _wait(queue: Queue, *marks: Any) -> None:
    for mark in marks:
        if mark is not None:
            queue.wait(mark)
