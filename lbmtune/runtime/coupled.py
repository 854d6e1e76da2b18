"""A program on the parts of a domain whose devices exchange directly, while they compute.

Each part has a queue for its edges, of a higher priority, one for its interior, and one for each message that it sends.
Whatever reads or overwrites what another queue writes waits for a mark of that queue:

    edges      of a launch wait for the messages to and from the part after the launch before, and for its interior
    interior   waits for the edges of the launch before, and with overlap `edge-first` for those of the same launch
    messages   wait for the edges at both ends

Edges are as thick as the halo at least. So all that is sent comes from edges, and nothing in the interior is read or
written by a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from lbmtune.backend.protocol import Binary, Compiler, PeerDevice, Queue
from lbmtune.codegen.program import FIRST_PLANE, Program
from lbmtune.decomposition.coupling import Coupling, bands, coupling_refusal
from lbmtune.decomposition.parts import Decomposition
from lbmtune.errors import InputError
from lbmtune.runtime.decomposed import DecomposedSimulation
from lbmtune.runtime.messages import halo_elements
from lbmtune.runtime.simulation import Bound
from lbmtune.runtime.transports import TRANSPORTS, End, Way

Array = Any
Kept = Literal["all", "launches", "exchange"]
"""What is enqueued of a step, so that the times of launches and of the exchange can be measured alone."""
GRAPH_LAUNCHES = 32
"""Most launches of a part in a graph."""


class CoupledSimulation(DecomposedSimulation):
    """The state of a domain in parts on devices of this process, with the exchange that a coupling describes.

    program: takes planes (`codegen.cuda.planes`) if its launches are to leave out the halo along z.
    """

    def __init__(
        self,
        program: Program,
        binary: Binary,
        devices: Sequence[PeerDevice],
        found: Decomposition,
        coupling: Coupling,
        compiler: Compiler,
        *,
        poisons: bool = False,
    ) -> None:
        """Load the program on each device and allocate its parts. Raises InputError, and as `Simulation` does."""
        owners = [devices[part.device] for part in found.parts]
        self._planes = FIRST_PLANE in program.arguments
        reached = all(owners[face.source].reaches(owners[face.target]) for face in found.faces)
        if reason := coupling_refusal(found, coupling, planes=self._planes, reached=reached):
            raise InputError(f"{reason}.")
        super().__init__(program, binary, devices, found, poisons=poisons)
        self.coupling, self._compiler = coupling, compiler
        through_host = coupling.transport == "host"
        self._edges = [device.queue(first=True) for device in owners]
        self._inner = [device.queue() for device in owners]
        self._senders = [owners[face.source].queue(first=True) for face in found.faces]
        self._receivers = [owners[face.target].queue(first=True) for face in found.faces if through_host]
        self._queues: list[Queue] = [*self._edges, *self._inner, *self._senders, *self._receivers]
        self._launches = [self._planned(number) for number in range(len(self.parts))]
        self._ways: dict[int, list[Way]] = {}
        self._poisoned: dict[tuple[int, int], Array] = {}
        self._graphs: dict[tuple[int, Kept], Callable[[], None]] = {}
        self._joined = False
        self._forget()

    def step(self, steps: int) -> None:
        """Enqueue time steps, a multiple of those between two exchanges. Raises InputError for another number."""
        self._enqueue(self._exchanges(steps), "all")

    def time_s(self, steps: int, kept: Kept = "all") -> float:
        """Return the seconds of time steps from idle devices to idle devices; the state is wrong if parts are left out.

        Whatever they need is made before. Raises InputError as `step` does.
        """
        launches = self._exchanges(steps)
        self._prepare(launches, kept)
        self.synchronize()
        start = time.perf_counter()
        self._enqueue(launches, kept)
        self.synchronize()
        return time.perf_counter() - start

    def _enqueue(self, launches: int, kept: Kept) -> None:
        """Enqueue launches with the exchange after each, as graphs if the coupling has them and a cycle begins."""
        while launches:
            together = self._together(launches)
            if together:
                self._replay(self._graph(together, kept))
            else:
                self._part()
                self._enqueue_one(self.parts[0].place, kept)
            for one in self.parts:
                one.advance(together or 1)
            launches -= together or 1

    def _prepare(self, launches: int, kept: Kept) -> None:
        for place in range(self.parts[0].places):
            self._ways_after(place)
        while together := self._together(launches):
            self._graph(together, kept)
            launches -= together

    def _enqueue_one(self, place: int, kept: Kept) -> None:
        for number in range(len(self.parts)):
            self._launch(number, place, kept)
        if kept != "launches":
            self._send(place)

    def _launch(self, number: int, place: int, kept: Kept) -> None:
        """Enqueue the launches of a part: on its edges, then on its other planes."""
        part, first, second = self.parts[number], self._edges[number], self._inner[number]
        edges, inner = self._launches[number][place] if kept != "exchange" else ([], [])
        before = self._edge_marks[number]
        _wait(first, *self._sent_marks[number], self._inner_marks[number])
        first.run(partial(part.enqueue, edges))
        if self._poisons:
            first.run(partial(self._poison, number, place))
        self._edge_marks[number] = first.mark()
        if inner:
            _wait(second, self._edge_marks[number] if self.coupling.overlap == "edge-first" else before)
            second.run(partial(part.enqueue, inner))
            self._inner_marks[number] = second.mark()

    def _send(self, place: int) -> None:
        """Enqueue all messages after the launches at a place of a cycle."""
        self._sent_marks = self._no_marks
        for number, (face, way) in enumerate(zip(self.decomposition.faces, self._ways_after(place), strict=True)):
            queue = self._senders[number]
            _wait(queue, self._edge_marks[face.source], self._edge_marks[face.target])
            queue.run(way.send)
            if way.receive:
                sent, queue = queue.mark(), self._receivers[number]
                queue.wait(sent)
                queue.run(way.receive)
            mark = queue.mark()
            for part in {face.source, face.target}:
                self._sent_marks[part].append(mark)

    def _poison(self, number: int, place: int) -> None:
        """Poison the halo of a part, but for what it sends from there."""
        part = self.parts[number]
        parity = part.parity_at((place + 1) % part.places)
        sent = [one.taken for one in self._messages_before(parity) if one.source == number]
        if (number, parity) not in self._poisoned:
            kept = np.setdiff1d(halo_elements(self.decomposition.parts[number], part), np.concatenate(sent))
            self._poisoned[number, parity] = part.xp.asarray(kept)
        self._state_after(number, place)[self._poisoned[number, parity]] = part.program.config.stored.poison

    def _planned(self, number: int) -> list[tuple[list[Bound], list[Bound]]]:
        """Return the launches of a part for each place of a cycle: on edges, and on the planes between them.

        Without overlap all planes are those of an edge.
        """
        part = self.parts[number]
        with self.devices[number].current():
            if not self._planes:
                return [(step, []) for step in part.whole_plan]
            found = bands(self.decomposition, self.decomposition.parts[number], self.coupling)
            edges, inner = [part.plan_of(planes) for planes in found.edges], part.plan_of(found.inner)
        if not edges:
            return [(step, []) for step in inner]
        return [([one for edge in edges for one in edge[place]], step) for place, step in enumerate(inner)]

    def _ways_after(self, place: int) -> list[Way]:
        """Return the ways of the messages after the launches at a place of a cycle."""
        if place not in self._ways:
            first, make = self.parts[0], TRANSPORTS[self.coupling.transport]
            states = [self._state_after(number, place) for number in range(len(self.parts))]
            ends = [End(*each) for each in zip(self.parts, states, self.devices, strict=True)]
            sent = self._messages_before(first.parity_at((place + 1) % first.places))
            self._ways[place] = [make(one, ends[one.source], ends[one.target], self._compiler) for one in sent]
        return self._ways[place]

    def _state_after(self, number: int, place: int) -> Array:
        """Return the buffer that holds the state of a part after the launches at a place of a cycle."""
        part = self.parts[number]
        return part.state_at((place + 1) % part.places)

    def _together(self, launches: int) -> int:
        """Return how many of the next launches one graph enqueues; 0: none."""
        cycle = self.parts[0].places
        if self.coupling.launching != "graph" or self._poisons or self.parts[0].place:
            return 0
        return min(launches // cycle * cycle, GRAPH_LAUNCHES)

    def _graph(self, launches: int, kept: Kept) -> Callable[[], None]:
        """Return a function that enqueues launches from the beginning of a cycle in the first queue."""
        if (launches, kept) not in self._graphs:
            recorded = partial(self._forked, launches, kept)
            self._graphs[launches, kept] = self.devices[0].recorded_in(self._queues[0], recorded)
        return self._graphs[launches, kept]

    def _forked(self, launches: int, kept: Kept) -> None:
        """Enqueue launches in all queues, which begin behind the first one and end before its later work."""
        self._fork()
        for n in range(launches):
            self._enqueue_one(n % self.parts[0].places, kept)
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
