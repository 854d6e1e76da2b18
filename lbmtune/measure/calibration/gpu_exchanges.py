"""Exchanges between two devices that wait for each other, and what they take of a busy device and of the host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from lbmtune.backend.protocol import Queue
from lbmtune.measure.calibration.gpu_ends import BEFORE, COPIES, FEW, MESSAGES, End
from lbmtune.measure.calibration.microbench import repeat

Work = Callable[[], None]
Best = Callable[[str, Work], float]
"""Returns the least seconds of what a function enqueues, of some rounds, by what it is."""
Sends = Callable[[End, End, int, int], tuple[Work, ...]]
"""Returns the works of a message of some bytes and a number: on the device that sends it, and on the other one."""
_EXCHANGES, _ROUNDS = 24, 5
"""Exchanges of a sample, and samples of which the least one counts."""
_CALLS = 100
"""Calls that are timed on the host together, of which no queue is full."""
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


def messages_s(one: End, other: End, what: str, sends: Sends, wait_s: float, best: Best) -> dict[int, float]:
    """Return the seconds of a message by its bytes, if both devices send two and wait for each other.

    As parts with two neighbours do: messages have queues of their own, which wait for one queue of both devices, and
    those for all messages. wait_s: of each of the two waits, which do not count.
    """
    pairs = [(*way, number) for number in range(MESSAGES) for way in ((one, other), (other, one))]
    queues = [(source.device.queue(first=True), target.device.queue(first=True)) for source, target, _ in pairs]
    found = {}
    for size in COPIES:
        works = [sends(source, target, size, number) for source, target, number in pairs]
        sending = [list(zip(each, work, strict=False)) for each, work in zip(queues, works, strict=True)]
        exchanges = partial(_exchange, (one, other), sending)
        round_s = best(f"{what} of {size} bytes in exchanges", exchanges) / _EXCHANGES
        found[size] = max(round_s - 2 * wait_s, NO_WAIT_S) / MESSAGES
    return found


def _exchange(ends: tuple[End, End], sending: Sequence[Sequence[tuple[Queue, Work]]]) -> None:
    """Enqueue exchanges, each of all messages; the works of a message follow each other."""
    sent: list[Any] = []
    for _ in range(_EXCHANGES):
        for end in ends:
            for mark in sent:
                end.queue.wait(mark)
        ready = [end.queue.mark() for end in ends]
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
        ends[0].queue.wait(mark)


def busy_copy_s(one: End, other: End) -> dict[int, float]:
    """Return the seconds of a copy by its bytes while both devices move what their memory can."""
    return {size: _busy_s(one, other, size, times) / times for size, times in COPIES.items()}


def _busy_s(one: End, other: End, size: int, times: int) -> float:
    beside, found = one.device.queue(first=True), list[float]()
    copies = partial(repeat, one.copies(other, size), times)

    def load() -> None:
        for end in (one, other):
            end.queue.run(partial(repeat, end.moves(end.source, end.target), BEFORE // 2))

    for _ in range(_ROUNDS):
        load()
        beside.wait(one.queue.mark())  # all is enqueued until then
        load()
        beside.run(lambda: found.append(one.device.time_s(copies)))
        for end in (one, other):
            end.device.synchronize()
    return min(found)


def call_s(one: End, other: End) -> dict[str, float]:
    """Return the seconds of the host for each call that enqueues something, and for entering a queue ('run')."""
    queue, mark = one.device.queue(first=True), other.queue.mark()
    calls: dict[str, Work] = {
        "launch": partial(queue.run, partial(repeat, one.moves(one.source, one.target, FEW), _CALLS)),
        "copy": partial(queue.run, partial(repeat, one.copies(other, min(COPIES)), _CALLS)),
        "run": partial(repeat, partial(queue.run, lambda: None), _CALLS),
        "mark": partial(repeat, queue.mark, _CALLS),
        "wait": partial(repeat, partial(queue.wait, mark), _CALLS),
    }
    return {name: min(_host_s(one, call) for _ in range(_ROUNDS)) / _CALLS for name, call in calls.items()}


def _host_s(end: End, call: Work) -> float:
    """Return the seconds of the host until it has enqueued something on an idle device."""
    end.device.synchronize()
    begin = time.perf_counter()
    call()
    seconds = time.perf_counter() - begin
    end.device.synchronize()
    return seconds
