"""Micro-benchmarks of a GPU: copies of arrays of structures."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes import DISPLACED, PARTS, STRUCTURES, WORD_BYTES, probe, structures_probe
from lbmtune.codegen.program import Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.gpu_bench import Figures, GpuBench, Part
from lbmtune.measure.calibration.gpu_caches import SAMPLED_WORDS, SPILL_ROOM
from lbmtune.measure.calibration.gpu_memory import GRANULE, WALK, displaced_per_s
from lbmtune.measure.calibration.microbench import Kernel, check_moved
from lbmtune.measure.timing.state import all_true
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import BLOCK, STRUCTURE_FAR, Displaced, Parts, Planes, Structures

_SHARE = 4
"""Part of an array that is copied, as a divisor: far more than a cache holds, and short for slow copies."""


def structures(_: Limits) -> Iterator[Part]:
    """Benchmark copies of arrays of structures by few threads with local memory, which is not counted."""
    for one in measured.STRUCTURES:
        yield Part("structures_bytes_per_s", _with_words(one), STRUCTURES, partial(_structures, one))


def _with_words(one: Structures | Parts) -> Program:
    width, elements = one.element_bytes, one.elements
    return structures_probe(streams=elements, access_bytes=width, local_bytes=SPILL_ROOM, threads=BLOCK)


def _structures(one: Structures, bench: GpuBench, kernel: Kernel) -> Figures:
    room = _room(one, bench, _SHARE) // GRANULE * GRANULE
    far, apart = (min(room, n) for n in (STRUCTURE_FAR, bench.device.limits.multiprocessors * one.threads))
    steps = room // apart
    numbers = apart * steps, far, one.local_bytes // WORD_BYTES, apart, steps
    yield one.name, displaced_per_s(_copy(one), bench, kernel, *numbers)


def planes(_: Limits) -> Iterator[Part]:
    """Benchmark copies of arrays of structures, row by row."""
    for one in measured.PLANES:
        width, elements = one.element_bytes, one.elements
        program = probe(streams=elements, access_bytes=width, run_bytes=width, threads=BLOCK)
        yield Part("planes_bytes_per_s", program, DISPLACED, partial(_planes, one))


def _planes(one: Planes, bench: GpuBench, kernel: Kernel) -> Figures:
    room = _room(one, bench)
    apart = min(one.apart, room // WALK // GRANULE * GRANULE)
    yield one.name, displaced_per_s(_copy(one), bench, kernel, room // (WALK * apart) * WALK * apart, apart, apart, 1)


def _copy(one: Structures | Planes) -> Displaced:
    return Displaced(one.element_bytes, one.element_bytes, one.side, BLOCK, streams=one.elements)


def _room(one: Structures | Planes | Parts, bench: GpuBench, share: int = 1) -> int:
    """Return the structures that a part of an array, given as a divisor, has room for."""
    return STREAMS * bench.stream_bytes // share // (one.elements * one.element_bytes)


def parts(_: Limits) -> Iterator[Part]:
    """Benchmark copies of some elements of each structure; only those are counted."""
    for one in measured.PARTS:
        yield Part("parts_bytes_per_s", _with_words(one), PARTS, partial(_parts, one))


def _parts(one: Parts, bench: GpuBench, kernel: Kernel) -> Figures:
    width, elements = one.element_bytes, one.elements
    accesses = _room(one, bench) // GRANULE * GRANULE
    run = kernel.by(accesses // BLOCK, bench.source, bench.target, np.int32(accesses), np.uint32(one.mask))
    found = bench.copied_per_s(run, 2.0 * one.copied * width * accesses)
    looked_at = min(accesses, SAMPLED_WORDS // elements) * elements * width // 2
    source, target = (
        array.view("uint16")[:looked_at].reshape(-1, elements, width // 2) for array in (bench.source, bench.target)
    )
    moved = bench.device.xp.asarray([bool(one.mask >> q & 1) for q in range(elements)])
    check_moved(all_true(target[:, moved] == source[:, moved]) and all_true(target[:, ~moved] == 0))
    yield one.name, found
