"""Micro-benchmarks of a GPU: copies of arrays of structures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby
from math import ceil

import numpy as np

from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.probes import DISPLACED, PARTS, STRUCTURES, WORD_BYTES, probe, structures_probe
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.gpu_bench import Figures, GpuBench, Kernel, Part, check_moved
from lbmtune.measure.calibration.gpu_caches import SAMPLED_WORDS, SPILL_ROOM
from lbmtune.measure.calibration.gpu_memory import GRANULE, IN_PLACE, SIDES, WALK, displaced_per_s, displacements
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import BLOCK, STRUCTURE_FAR, Displaced, Parts, Planes, Structures

_SHARE = 4
"""Part of an array that is copied, as a divisor: far more than a cache holds, and short for slow copies."""


def structures(_: Limits) -> Iterator[Part]:
    """Benchmark copies of arrays of structures by few threads with local memory, which is not counted."""
    for (width, elements), each in groupby(measured.structures(), lambda one: (one.element_bytes, one.elements)):
        program = structures_probe(streams=elements, access_bytes=width, local_bytes=SPILL_ROOM, threads=BLOCK)
        yield Part("structures_bytes_per_s", program, STRUCTURES, partial(_structures, tuple(each)))


def _structures(copies: tuple[Structures, ...], bench: GpuBench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        room = STREAMS * bench.stream_bytes // _SHARE // (elements * width) // GRANULE * GRANULE
        far, apart = (min(room, n) for n in (STRUCTURE_FAR, bench.device.limits.multiprocessors * one.threads))
        steps = room // apart
        load, load_far, store, store_far = SIDES[one.side]
        load_far, store_far = load_far * far, store_far * far
        words = one.local_bytes // WORD_BYTES
        numbers = map(np.int32, (apart * steps, load, load_far, store, store_far, words, apart, steps))
        to = bench.source if one.side in IN_PLACE else bench.target
        run = kernel.by(ceil(apart / BLOCK), bench.source, to, *numbers)
        found = bench.copied_per_s(run, 2.0 * elements * width * apart * steps)
        if one.side not in IN_PLACE:
            by = (load, load_far), (store, store_far)
            bench.check(width, width, apart * steps, *(displacements(elements, *side) for side in by))
        yield one.name, found


def planes(_: Limits) -> Iterator[Part]:
    """Benchmark copies of arrays of structures, row by row."""
    for (width, elements), each in groupby(measured.planes(), lambda one: (one.element_bytes, one.elements)):
        program = probe(streams=elements, access_bytes=width, run_bytes=width, threads=BLOCK)
        yield Part("planes_bytes_per_s", program, DISPLACED, partial(_planes, tuple(each)))


def _planes(copies: tuple[Planes, ...], bench: GpuBench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        room = STREAMS * bench.stream_bytes // (elements * width)
        apart = min(one.apart, room // WALK // GRANULE * GRANULE)
        copy = Displaced(width, width, one.side, BLOCK, streams=elements)
        yield one.name, displaced_per_s(copy, bench, kernel, room // (WALK * apart) * WALK * apart, apart, 1)


def parts(_: Limits) -> Iterator[Part]:
    """Benchmark copies of some elements of each structure; only those are counted."""
    for (width, elements), each in groupby(measured.parts(), lambda one: (one.element_bytes, one.elements)):
        program = structures_probe(streams=elements, access_bytes=width, local_bytes=SPILL_ROOM, threads=BLOCK)
        yield Part("parts_bytes_per_s", program, PARTS, partial(_parts, tuple(each)))


def _parts(copies: tuple[Parts, ...], bench: GpuBench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        accesses = STREAMS * bench.stream_bytes // (elements * width) // GRANULE * GRANULE
        run = kernel.by(accesses // BLOCK, bench.source, bench.target, np.int32(accesses), np.uint32(one.mask))
        found = bench.copied_per_s(run, 2.0 * one.copied * width * accesses)
        looked_at = min(accesses, SAMPLED_WORDS // elements) * elements * width // 2
        source, target = (
            array.view("uint16")[:looked_at].reshape(-1, elements, width // 2) for array in (bench.source, bench.target)
        )
        moved = bench.device.xp.asarray([bool(one.mask >> q & 1) for q in range(elements)])
        check_moved(bool((target[:, moved] == source[:, moved]).all()) and not bool(target[:, ~moved].any()))
        yield one.name, found
