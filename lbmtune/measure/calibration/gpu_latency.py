"""Micro-benchmarks of a GPU: instruction issue, latencies, synchronisation, launches."""

from collections.abc import Iterator
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
from lbmtune.measure.calibration.gpu_bench import Figures, GpuBench, Part
from lbmtune.measure.calibration.microbench import Kernel, repeat
from lbmtune.model.machine import benchmark_names as measured

_CHASED_BYTES, _CHASED_IN_L2 = 384 << 20, 8 << 20
"""Bytes of a pointer chase, line after line: more than any cache, and between L1 and L2."""
_CHASE_STEPS, _LINE_BYTES = 1 << 14, 128
_LENGTH, _STAGES = 128, 2000
"""Instructions between two barriers, and turns."""
_SYNCS, _SYNC_THREADS = 500, 256
_EXCHANGE_LENGTH = 256
"""Instructions between two exchanges."""
_SMALL_LAUNCHES, _SMALL_BLOCK = 50, 128
_HAZARD_BYTES, _HAZARD_WORDS, _HAZARD_TURNS = 1 << 20, 2, 2000
"""Local memory of a multiprocessor, far more than its part of any L2 cache; words of a thread per turn; turns.

Compiled loops have 1.3 write-after-read hazards per wait, on average of 1580 places in 686 loops (NVRTC 13.0, compute
capability 9.0)."""


def instructions(_: Limits) -> Iterator[Part]:
    """Benchmark the warp instructions of the device per second."""
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
    each = 2 if options.get("kind") in ("conversion", "shared memory") else 1
    return Part("instructions_per_s", program, STAGES, partial(_issued, name, warps, factor, each))


def _issued(name: str, warps: int, factor: np.floating[Any], each: int, bench: GpuBench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors
    run = kernel.by(blocks, bench.target, factor, np.int32(_STAGES))
    yield name, each * bench.per_s(run, float(blocks * warps * _LENGTH * _STAGES))


def stages(limits: Limits) -> Iterator[Part]:
    """Benchmark a stage after which the warps of a block exchange words, one block per multiprocessor."""
    known = [one for one in MEETINGS if one != "neighbours" or limits.asynchronous]
    for meeting, warps in product(known, measured.EXCHANGE_WARPS):
        program = exchange_probe(meeting=meeting, threads=WARP * warps)
        yield Part("stages_s", program, EXCHANGED, partial(_stage, f"{meeting} by {warps}"))


def _stage(name: str, bench: GpuBench, kernel: Kernel) -> Figures:
    nothing = bench.device.empty(1, "int32")
    nothing.fill(0)
    numbers = np.float32(0.5), np.int32(_STAGES), np.int32(_EXCHANGE_LENGTH)
    run = kernel.by(bench.device.limits.multiprocessors, bench.target, nothing, *numbers)
    yield name, 1 / bench.per_s(run, float(_STAGES))


def spill_hazards(_: Limits) -> Iterator[Part]:
    """Benchmark words that are loaded from memory and stored again, during the load or after it."""
    for how, warps in product(measured.OVERTAKING, measured.OVERTAKEN_WARPS):
        program = overtaken_probe(
            local_bytes=_HAZARD_BYTES // (WARP * warps),
            together=_HAZARD_WORDS,
            overtakes=how == "overtaken",
            threads=WARP * warps,
        )
        yield Part("overtaken_s", program, OVERTAKEN, partial(_spill_hazard, how, warps))


def _spill_hazard(how: str, warps: int, bench: GpuBench, kernel: Kernel) -> Figures:
    run = kernel.by(bench.device.limits.multiprocessors, bench.target, np.int32(_HAZARD_TURNS))
    words = float(warps * _HAZARD_WORDS * _HAZARD_TURNS)
    yield measured.overtaken_name(how, warps), 1 / bench.per_s(run, words)


def latencies(_: Limits) -> Iterator[Part]:
    """Benchmark dependent loads from memory and from the L2 cache."""
    for table, chased_bytes in (("latency_s", _CHASED_BYTES), ("l2_latency_s", _CHASED_IN_L2)):
        yield Part(table, probe(threads=1), CHASE, partial(_latency, chased_bytes))


def _latency(chased_bytes: int, bench: GpuBench, kernel: Kernel) -> Figures:
    xp = bench.device.xp
    places = xp.arange(chased_bytes // WORD_BYTES, dtype=xp.uint32)
    following = ((places + _LINE_BYTES // WORD_BYTES) % places.size).astype(xp.uint32)
    place = bench.device.empty(1, "uint32")
    place.fill(0)
    yield "", 1 / bench.per_s(kernel.by(1, following, place, np.int32(_CHASE_STEPS)), _CHASE_STEPS)


def grid_sync(_: Limits) -> Iterator[Part]:
    """Benchmark an exchange between thread blocks with a grid-wide barrier, one block per multiprocessor."""
    yield Part("meeting_s", issue_probe(threads=_SYNC_THREADS), MEET, _grid_sync)


def _grid_sync(bench: GpuBench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors
    words = bench.device.empty(3 * blocks * _SYNC_THREADS, "uint32")
    arrivals = bench.device.empty(2, "uint32")
    arrivals.fill(0)
    yield "", 1 / bench.per_s(kernel.by(blocks, words, arrivals, np.int32(_SYNCS)), _SYNCS)


def launches(_: Limits) -> Iterator[Part]:
    """Benchmark launches of small copies, back to back, to and fro."""
    for edge, way in product(measured.SMALL_EDGES, measured.LAUNCHED):
        program = probe(threads=_SMALL_BLOCK, early=way == "dependent")
        yield Part("small_s", program, RUNS, partial(_launch, way, edge**3))


def _launch(way: str, accesses: int, bench: GpuBench, kernel: Kernel) -> Figures:
    blocks = ceil(accesses / _SMALL_BLOCK)
    sides: tuple[tuple[Array, Array], ...] = (bench.source, bench.target), (bench.target, bench.source)
    there, back = (kernel.by(blocks, *side, np.int32(accesses)) for side in sides)

    def to_and_fro() -> None:
        there()
        back()

    many = partial(repeat, to_and_fro, _SMALL_LAUNCHES // 2)
    run = many if way == "call" else kernel.executable.recorded(many)
    yield f"{way} {2 * STREAMS * WORD_BYTES * accesses}", bench.shortest_s(run) / _SMALL_LAUNCHES
