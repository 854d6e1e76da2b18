"""A program on the parts of a domain that have a process each, which exchange through a group of processes.

What crosses the faces of a part lies together in a buffer, in the order of the other parts, then of the faces, then of
the state of the sender, so that neighbours there are neighbours in the buffer. A kernel fills it, the group sends and
receives, and a kernel puts what has arrived where the next step reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate, groupby
from math import inf, isnan
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np

from lbmtune.backend.protocol import Binary, Compiler, PeerDevice
from lbmtune.codegen.program import Program
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.parts import Decomposition
from lbmtune.errors import InputError
from lbmtune.runtime.parts.coupled import CoupledSimulation
from lbmtune.runtime.parts.messages import joined, runs_of
from lbmtune.runtime.parts.schedule import Kept, Traffic
from lbmtune.runtime.parts.transports import End, Way, Work, moved

Array = Any


class Group(Protocol):
    """Processes that exchange arrays of their devices, each known by its rank."""

    def exchange(self, sent: Sequence[tuple[int, Array]], received: Sequence[tuple[int, Array]], /) -> None:
        """Enqueue in the current queue that arrays go to other ranks, and that arrays are filled by other ranks."""
        ...

    def largest(self, value: float, /) -> float:
        """Return the largest value of all ranks, once each of them has called this."""
        ...

    def check(self, *, more: bool) -> None:
        """Raise DeviceFaultError if a rank has ended that the work needs. more: whether more is to be enqueued."""
        ...


class RankedSimulation(CoupledSimulation):
    """The part of this process in a domain whose other parts belong to other processes, which do the same steps.

    found: has one part for each rank; group: all ranks, of which `rank` is this one.
    """

    apart = True

    def __init__(
        self,
        program: Program,
        binary: Binary,
        device: PeerDevice,
        found: Decomposition,
        rank: int,
        group: Group,
        coupling: Coupling,
        compiler: Compiler,
        *,
        poisons: bool = False,
    ) -> None:
        """Load the program and allocate the part. Raises InputError, and as `Simulation` does."""
        self._rank, self._group = rank, group
        _check_alike(device, rank, group)
        own = found.parts[rank]
        super().__init__(program, binary, {own.device: device}, found, coupling, compiler, poisons=poisons, own=(own,))
        self.exchange()  # the first one connects ranks, which cannot be recorded in a graph

    def exchange(self) -> None:
        """Exchange what crosses the faces after a step, and wait for it."""
        part, device = self.parts[0], self.devices[0]
        device.synchronize()
        with device.current():
            self._way(End(part, part.state, device), part.parity).send()
        device.synchronize()

    def step(self, steps: int) -> None:
        """Enqueue time steps (`CoupledSimulation.step`). Raises DeviceFaultError if another rank has ended."""
        self._group.check(more=True)
        super().step(steps)

    def synchronize(self) -> None:
        """Wait for all that is enqueued. Raises DeviceFaultError if another rank has ended before."""
        super().synchronize()
        self._group.check(more=False)

    @property
    def device_count(self) -> int:
        """Return the number of devices of all ranks."""
        return len(self.decomposition.parts)

    def time_s(self, steps: int, kept: Kept = "all") -> float:
        """Return the seconds of time steps in the rank that takes longest (`CoupledSimulation.time_s`)."""
        self._schedule.prepare(self._exchanges(steps), kept)
        self.largest(0.0)  # so that all begin together
        return self.largest(super().time_s(steps, kept))

    def exchange_s(self, busy: int) -> float:
        """Return the seconds of an exchange alone in the rank that takes longest."""
        return self.largest(super().exchange_s(busy))

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks, infinity if one of them has none."""
        with self.devices[0].current():
            return self._group.largest(inf if isnan(value) else value)

    def _traffic(self, _: Coupling) -> Traffic:
        return Traffic([(0, 0)], lambda ends, parity: [self._way(ends[0], parity)])

    def _way(self, end: End, parity: int) -> Way:
        """Return the work of all messages before a step of a parity: from the state into a buffer, and back."""
        here = self.messages_before(parity)
        out = _staged(end, ((one.target, one.taken) for one in here if one.source == self._rank))
        into = _staged(end, ((one.source, one.put) for one in here if one.target == self._rank))
        works: list[Work] = [partial(self._group.exchange, out.slices, into.slices)]
        if len(out.elements):
            works.insert(0, moved(runs_of(out.elements, out.places), end, out.buffer, self._movers))
        if len(into.elements):
            works.append(
                moved(runs_of(into.places, into.elements), end._replace(state=into.buffer), end.state, self._movers)
            )
        return Way(partial(_all, works))


def _check_alike(device: PeerDevice, rank: int, group: Group) -> None:
    """Raise InputError, in every rank, if their devices are not of one kind."""
    kind = device.environment.device
    number = float(crc32(kind.encode()))
    with device.current():
        alike = group.largest(number) == -group.largest(-number)
    if not alike:
        raise InputError(
            f"device={kind} of rank {rank} is not supported beside those of other ranks (use devices of one kind): "
            "they take different times for equal parts."
        )


class _Staged(NamedTuple):
    """A buffer of what goes to other ranks, or comes from them.

    elements: of the state, in the order of the buffer; slices: of the buffer, each with the rank at its other end.
    """

    buffer: Array
    elements: Array
    slices: list[tuple[int, Array]]

    @property
    def places(self) -> Array:
        """Return the places of the elements in the buffer."""
        return np.arange(len(self.elements))


def _staged(end: End, messages: Iterable[tuple[int, Array]]) -> _Staged:
    """Return the buffer of the elements of messages, each with its other rank; those of a rank are one slice."""
    by_rank = {rank: joined([of for _, of in each]) for rank, each in groupby(sorted(messages, key=_rank), _rank)}
    with end.device.current():
        buffer = end.device.empty(sum(map(len, by_rank.values())), end.state.dtype.name)
    last = accumulate(map(len, by_rank.values()))
    slices = [(rank, buffer[n - len(of) : n]) for n, (rank, of) in zip(last, by_rank.items(), strict=True) if len(of)]
    return _Staged(buffer, joined([*by_rank.values()]), slices)


def _rank(message: tuple[int, Array]) -> int:
    return message[0]


def _all(works: Sequence[Work]) -> None:
    for work in works:
        work()
