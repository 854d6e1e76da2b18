"""Exchanges between two devices that wait for each other, and what they take of a busy device and of the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median
from typing import Any

from lbmtune.backend.protocol import Queue
from lbmtune.measure.calibration.gpu_ends import BEFORE, COPIES, FEW, MESSAGES, End
from lbmtune.measure.calibration.microbench import repeat
from lbmtune.measure.parts.host_turns import turn_s

Work = Callable[[], None]
Best = Callable[[str, Work], float]
"""Returns the least seconds of what a function enqueues, of some rounds, by what it is."""
Sends = Callable[[End, End, int, int], tuple[Work, ...]]
"""Returns the works of a message of some bytes and a number: on the device that sends it, and on the other one."""
Sending = Sequence[Sequence[tuple[Queue, Work]]]
"""The works of each message, which follow each other, in their queues."""
_EXCHANGES, _BUSY_EXCHANGES, _ROUNDS = 24, 12, 5
"""Exchanges of a sample, of one between busy devices, and samples of which the least one counts."""
_CALLS, _CALL_ROUNDS = 100, 9
"""Calls that are timed on the host together, of which no queue is full, and times of which the median counts: one
minute a host is faster than the next."""
NO_WAIT_S = 1e-9
"""Seconds of a wait, or of a start, that is too short to be measured."""


def copied(source: End, target: End, size: int, _: int) -> tuple[Work, ...]:
    """Return the copy of a message."""
    return (source.copies(target, size),)


def packed(source: End, target: End, size: int, number: int) -> tuple[Work, ...]:
    """Return the launch of a kernel that sends a message."""
    return (source.packs(target.target, size, number),)


def through_host(ends: Iterable[End]) -> Sends:
    """Return copies of messages into memory of the host and from there."""
    held = {
        (id(source), number): source.device.host_empty(max(COPIES) // source.source.itemsize, "uint32")
        for source in ends
        for number in range(MESSAGES)
    }

    def sends(source: End, target: End, size: int, number: int) -> tuple[Work, ...]:
        count, there = size // source.source.itemsize, held[id(source), number]
        out = partial(source.device.copy, there[:count], source.source[:count])
        return out, partial(target.device.copy, target.target[:count], there[:count])

    return sends


def messages_s(
    one: End, other: End, what: str, sends: Sends, wait_s: float, best: Best, *, busy: bool = False
) -> dict[int, float]:
    """Return the seconds of a message by its bytes, if both devices send two and wait for each other.

    As parts with two neighbours do: messages have queues of their own, which wait for one queue of both devices, and
    those for all messages. wait_s: of each of the two waits, which do not count; busy: whether both devices move what
    their memory can meanwhile.
    """
    queues = [
        (source.device.queue(first=True), target.device.queue(first=True)) for source, target, _ in _ways(one, other)
    ]
    found = {}
    for size in COPIES:
        sending = _sending(one, other, sends, size, queues)
        if busy:
            round_s = _busy_exchanges_s(one, other, sending) / _BUSY_EXCHANGES
        else:
            exchanges = partial(_exchange, (one.queue, other.queue), sending, _EXCHANGES)
            round_s = best(f"{what} of {size} bytes in exchanges", exchanges) / _EXCHANGES
        found[size] = max(round_s - 2 * wait_s, NO_WAIT_S) / MESSAGES
    return found


def _ways(one: End, other: End) -> list[tuple[End, End, int]]:
    """Return the sender, the receiver and the number of each message."""
    return [(*way, number) for number in range(MESSAGES) for way in ((one, other), (other, one))]


def _sending(one: End, other: End, sends: Sends, size: int, queues: Sequence[Sequence[Queue]]) -> Sending:
    """Return the works of all messages of some bytes. queues: of the sender and the receiver of each."""
    works = [sends(source, target, size, number) for source, target, number in _ways(one, other)]
    return [list(zip(each, work, strict=False)) for each, work in zip(queues, works, strict=True)]


def _exchange(centres: Sequence[Queue], sending: Sending, times: int) -> None:
    """Enqueue exchanges, each of all messages. centres: a queue of each device, for which messages wait."""
    sent: list[Any] = []
    for _ in range(times):
        for centre in centres:
            for mark in sent:
                centre.wait(mark)
        ready = [centre.mark() for centre in centres]
        sent.clear()
        for works in sending:
            before = ready
            for queue, work in works:
                for mark in before:
                    queue.wait(mark)
                queue.run(work)
                before = [queue.mark()]
            sent += before
    for mark in sent:
        centres[0].wait(mark)


def _load(*ends: End) -> None:
    """Enqueue launches that keep devices busy with their memory."""
    for end in ends:
        end.queue.run(partial(repeat, end.moves(end.source, end.target), BEFORE // 2))


def _busy_exchanges_s(one: End, other: End, sending: Sending) -> float:
    """Return the seconds of exchanges beside launches, the least of some rounds; all is enqueued when they begin."""
    ends, found = (one, other), list[float]()
    centres = [end.device.queue(first=True) for end in ends]
    exchanges = partial(_exchange, centres, sending, _BUSY_EXCHANGES)
    for _ in range(_ROUNDS):
        _load(*ends)
        for mark in [end.queue.mark() for end in ends]:
            for centre in centres:
                centre.wait(mark)
        _load(*ends)
        centres[0].run(lambda: found.append(one.device.time_s(exchanges)))
        _settle(*ends)
    return min(found)


def _settle(*ends: End) -> None:
    for end in ends:
        end.device.synchronize()


def busy_copy_s(one: End, other: End) -> dict[int, float]:
    """Return the seconds of a copy by its bytes while both devices move what their memory can."""
    return {size: _busy_s(one, other, size, times) / times for size, times in COPIES.items()}


def _busy_s(one: End, other: End, size: int, times: int) -> float:
    beside, found = one.device.queue(first=True), list[float]()
    copies = partial(repeat, one.copies(other, size), times)
    for _ in range(_ROUNDS):
        _load(one, other)
        beside.wait(one.queue.mark())  # all is enqueued until then
        _load(one, other)
        beside.run(lambda: found.append(one.device.time_s(copies)))
        _settle(one, other)
    return min(found)


def call_s(one: End, other: End) -> dict[str, float]:
    """Return the seconds of the host for each call that enqueues something, and for what it does besides ('turn').

    All on devices that are busy, so that marks are still to come, and by turns on both. 'run': entering a queue.
    """
    ends = one, other
    queues = [end.device.queue(first=True) for end in ends]
    marks = list[Any]()

    def by_turns(call: Callable[[Queue], Any]) -> Work:
        def run() -> None:
            for queue in queues:
                call(queue)

        return partial(repeat, run, _CALLS // len(queues))

    def started() -> None:
        marks[:] = [end.queue.mark() for end in ends]
        for queue in queues:
            queue.wait(marks[0])

    calls: dict[str, Work] = {
        "launch": partial(queues[0].run, partial(repeat, one.moves(one.source, one.target, FEW), _CALLS)),
        "copy": partial(queues[0].run, partial(repeat, one.copies(other, min(COPIES)), _CALLS)),
        "run": by_turns(lambda queue: queue.run(lambda: None)),
        "mark": by_turns(lambda queue: queue.mark()),
        "wait": by_turns(lambda queue: queue.wait(marks[queue is queues[0]])),
    }
    return {**{name: _host_s(ends, started, call) / _CALLS for name, call in calls.items()}, "turn": turn_s()}


def _host_s(ends: tuple[End, End], started: Work, call: Work) -> float:
    """Return the median seconds of the host until it has enqueued something behind launches of busy devices."""
    found = list[float]()
    for _ in range(_CALL_ROUNDS):
        _settle(*ends)
        _load(*ends)
        started()
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    _settle(*ends)
    return median(found)
