"""Measure the work of a host for parts on several devices, besides the calls that enqueue work for a device."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

from lbmtune.catalogue.families.cuda.direct import Direct
from lbmtune.codegen.streams import CASE
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.runtime.parts.decomposed import DecomposedSimulation
from lbmtune.runtime.parts.schedule import Schedule, Traffic
from lbmtune.runtime.parts.transports import Way

_ROUNDS, _SAMPLES = 200, 9


class _Silent:
    """A device and a queue whose calls do nothing."""

    def queue(self, **_: object) -> _Silent:
        return self

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, work: Callable[[], None]) -> None:
        work()

    def mark(self) -> _Silent:
        return self

    def wait(self, _: object) -> None:
        pass


class _Part:
    """A part whose launches do nothing."""

    place, places, state = 0, 1, None

    def plan_of(self, *_: object) -> list[list[None]]:
        return [[None]]

    def enqueue(self, _: object) -> None:
        pass

    def advance(self, _: int) -> None:
        pass

    def parity_at(self, _: int) -> int:
        return 0

    def state_at(self, _: int) -> None:
        pass


def turn_s() -> float:
    """Return the seconds of the host for a message, or for a device between two exchanges, without any call.

    By the schedule of two parts itself (`runtime.parts.schedule`), in queues that do nothing: the median of some times,
    since one minute a host is faster than the next.
    """
    found = decomposed(CASE, Direct(), parse_cut("z:2"))
    ends = [(face.source, face.target) for face in found.faces]
    whole: Any = SimpleNamespace(
        decomposition=found, own=found.parts, parts=[_Part(), _Part()], devices=[_Silent(), _Silent()]
    )
    whole.synchronize = lambda: None
    traffic = Traffic(ends, lambda *_: [Way(lambda: None)] * len(ends))
    coupling = Coupling("pack", launching="call")
    schedule = Schedule(cast("DecomposedSimulation", whole), coupling, traffic, planes=True, poisons=False)
    times = list[float]()
    for _ in range(_SAMPLES):
        begin = time.perf_counter()
        schedule.enqueue(_ROUNDS, "all")
        times.append(time.perf_counter() - begin)
    return median(times) / _ROUNDS / (len(found.parts) + len(ends))
