"""What a GPU takes that is no matter of bandwidth: instructions, loads and blocks that wait for others, launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import ceil
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.limits import WARP
from lbmtune.codegen.probes import (
    CHASE,
    EXCHANGED,
    MEET,
    MEETINGS,
    OVERTAKEN,
    RUNS,
    STAGES,
    WORD_BYTES,
    exchange_probe,
    issue_probe,
    overtaken_probe,
    probe,
)
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.bench import Bench, Figures, Kernel, Part
from lbmtune.model.machine import benchmark_names as measured

_CHASED_BYTES, _CHASED_IN_L2 = 384 << 20, 8 << 20
"""That pointers lead through, a line after the other: more than any cache has, and more than L1 and less than L2."""
_CHASE_STEPS, _LINE_BYTES = 1 << 14, 128
_LENGTH, _STAGES = 128, 2000
"""Instructions between two meetings, and turns."""
_MEETINGS, _MEETING_THREADS = 500, 256
_EXCHANGE_LENGTH = 256
"""Instructions between two exchanges."""
_SMALL_LAUNCHES, _SMALL_BLOCK = 50, 128
_OVERTAKEN_BYTES, _OVERTAKEN_TOGETHER, _OVERTAKEN_TURNS = 1 << 20, 2, 2000
"""Local memory of a multiprocessor, far more than its part of any L2 cache; words that a thread takes in a turn; turns.

Compiled loops overtake 1.3 words from one wait to the next, on average of 1580 places in 686 of them (NVRTC 13.0,
compute capability 9.0)."""


def instructions(_: Limits) -> Iterator[Part]:
    """Instructions of warps per second, of the whole device."""
    most = measured.WARPS[-1]
    yield _issue("double", most, number="double")
    for kind in ("conversion", "shuffle", "shared memory"):
        yield _issue(kind, most, kind=kind)
    for warps in measured.WARPS:
        name = f"multiply-add, {warps} warps of {measured.CHAINS}"
        yield _issue(name, warps)
        yield _issue(f"{name}, meeting", warps, meets=True)


def _issue(name: str, warps: int, **options: Any) -> Part:
    length = _LENGTH // measured.CHAINS
    program = issue_probe(threads=WARP * warps, chains=measured.CHAINS, length=length, **options)
    factor = (np.float64 if options.get("number") == "double" else np.float32)(0.5)
    each = 2 if options.get("kind") in ("conversion", "shared memory") else 1  # there and back
    return Part("instructions_per_s", program, STAGES, partial(_issued, name, warps, factor, each))


def _issued(name: str, warps: int, factor: np.floating[Any], each: int, bench: Bench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors
    run = kernel.by(blocks, bench.target, factor, np.int32(_STAGES))
    yield name, each * bench.per_s(run, float(blocks * warps * _LENGTH * _STAGES))


def stages(limits: Limits) -> Iterator[Part]:
    """Seconds of a stage after which the warps of a block exchange words, one block on each multiprocessor."""
    known = [one for one in MEETINGS if one != "neighbours" or limits.asynchronous]
    for meeting, warps in product(known, measured.EXCHANGE_WARPS):
        program = exchange_probe(meeting=meeting, threads=WARP * warps)
        yield Part("stages_s", program, EXCHANGED, partial(_stage, f"{meeting} by {warps}"))


def _stage(name: str, bench: Bench, kernel: Kernel) -> Figures:
    nothing = bench.device.empty(1, "int32")
    nothing.fill(0)
    numbers = np.float32(0.5), np.int32(_STAGES), np.int32(_EXCHANGE_LENGTH)
    run = kernel.by(bench.device.limits.multiprocessors, bench.target, nothing, *numbers)
    yield name, 1 / bench.per_s(run, float(_STAGES))


def overtaken(_: Limits) -> Iterator[Part]:
    """Seconds of a multiprocessor for a word that memory has to bring, and that is stored meanwhile or afterwards."""
    for how, warps in product(measured.OVERTAKING, measured.OVERTAKEN_WARPS):
        program = overtaken_probe(
            local_bytes=_OVERTAKEN_BYTES // (WARP * warps),
            together=_OVERTAKEN_TOGETHER,
            overtakes=how == "overtaken",
            threads=WARP * warps,
        )
        yield Part("overtaken_s", program, OVERTAKEN, partial(_overtaken, how, warps))


def _overtaken(how: str, warps: int, bench: Bench, kernel: Kernel) -> Figures:
    run = kernel.by(bench.device.limits.multiprocessors, bench.target, np.int32(_OVERTAKEN_TURNS))
    words = float(warps * _OVERTAKEN_TOGETHER * _OVERTAKEN_TURNS)
    yield measured.overtaken_name(how, warps), 1 / bench.per_s(run, words)


def latencies(_: Limits) -> Iterator[Part]:
    """Seconds of a load that waits for the one before, from memory and from the L2 cache."""
    for table, chased_bytes in (("latency_s", _CHASED_BYTES), ("l2_latency_s", _CHASED_IN_L2)):
        yield Part(table, probe(threads=1), CHASE, partial(_latency, chased_bytes))


def _latency(chased_bytes: int, bench: Bench, kernel: Kernel) -> Figures:
    xp = bench.device.xp
    places = xp.arange(chased_bytes // WORD_BYTES, dtype=xp.uint32)
    following = ((places + _LINE_BYTES // WORD_BYTES) % places.size).astype(xp.uint32)
    place = bench.device.empty(1, "uint32")
    place.fill(0)
    yield "", 1 / bench.per_s(kernel.by(1, following, place, np.int32(_CHASE_STEPS)), _CHASE_STEPS)


def meeting(_: Limits) -> Iterator[Part]:
    """Seconds from what a block sends to what it then reads of another one, one block on each multiprocessor."""
    yield Part("meeting_s", issue_probe(threads=_MEETING_THREADS), MEET, _meeting)


def _meeting(bench: Bench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors
    words = bench.device.empty(3 * blocks * _MEETING_THREADS, "uint32")
    arrivals = bench.device.empty(2, "uint32")
    arrivals.fill(0)
    yield "", 1 / bench.per_s(kernel.by(blocks, words, arrivals, np.int32(_MEETINGS)), _MEETINGS)


def launches(_: Limits) -> Iterator[Part]:
    """Seconds of a launch that copies little, launch after launch, there and back."""
    for edge, way in product(measured.SMALL_EDGES, measured.LAUNCHED):
        program = probe(threads=_SMALL_BLOCK, early=way == "dependent")
        yield Part("small_s", program, RUNS, partial(_launch, way, edge**3))


def _launch(way: str, accesses: int, bench: Bench, kernel: Kernel) -> Figures:
    blocks = ceil(accesses / _SMALL_BLOCK)
    sides: tuple[tuple[Array, Array], ...] = (bench.source, bench.target), (bench.target, bench.source)
    there, back = (kernel.by(blocks, *side, np.int32(accesses)) for side in sides)
    many = partial(_alternate, there, back, _SMALL_LAUNCHES // 2)
    run = many if way == "call" else kernel.executable.recorded(many)
    yield f"{way} {2 * STREAMS * WORD_BYTES * accesses}", bench.shortest_s(run) / _SMALL_LAUNCHES


def _alternate(there: Callable[[], None], back: Callable[[], None], times: int) -> None:
    for _ in range(times):
        there()
        back()
