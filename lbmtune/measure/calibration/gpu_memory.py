"""Micro-benchmarks of a GPU: copies of streams whose accesses are displaced, listed, or made by few threads."""

from collections.abc import Iterator
from functools import partial
from math import ceil

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.limits import WARP
from lbmtune.codegen.probes import DISPLACED, LISTED, RUNS, SHUFFLED, WORD_BYTES, probe, shuffled_probe
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.gpu_bench import Figures, GpuBench, Part, shared_bytes
from lbmtune.measure.calibration.microbench import Kernel
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import BLOCK, WIDTHS, Displaced

GRANULE = 256
"""Numbers of accesses are multiples of it."""
_FAR = 1 << 16
"""Accesses from one that a stream is displaced to by rows to its own."""
SIDES = {
    "none": (0, 0, 0, 0),
    "stay": (0, 0, 0, 0),
    "rows": (0, 1, 0, 1),
    "loads": (1, 1, 0, 0),
    "stores": (0, 0, 1, 1),
    "in place": (1, 1, 1, 1),
}
"""Accesses and rows by which loads, and by which stores, are displaced."""
IN_PLACE = ("stay", "rows", "in place")
"""Sides of one array, which is updated in place."""
WALK = 8
"""Accesses, a row apart, that a thread makes in turn."""
_AHEAD = 1 << 16
"""Accesses ahead of which entries of a list are prefetched."""
_LISTED_SIDES = {"loads": (1, 0), "stores": (0, 1), "in place": (1, 1)}
_RUNS_BLOCK = 128


def runs(_: Limits) -> Iterator[Part]:
    """Benchmark streams in runs."""
    for name in measured.RUNS:
        access, run = name.partition(" of ")[::2]
        width, run_bytes = int(access), int(run or 0)
        program = probe(access_bytes=width, run_bytes=run_bytes, threads=_RUNS_BLOCK)
        yield Part("runs_bytes_per_s", program, RUNS, partial(_copied, name, width, run_bytes))


def fewer_threads(limits: Limits) -> Iterator[Part]:
    """Benchmark separate streams with few threads per multiprocessor."""
    for width, counts in measured.THREADS.items():
        for count in counts:
            program = probe(access_bytes=width, threads=BLOCK, shared_bytes=shared_bytes(limits, count, BLOCK))
            yield Part("threads_bytes_per_s", program, RUNS, partial(_copied, f"{width} by {count}", width, 0))


def _copied(name: str, width: int, run_bytes: int, bench: GpuBench, kernel: Kernel) -> Figures:
    accesses = bench.stream_bytes // width
    run = kernel.by(ceil(accesses / kernel.launch.block[0]), bench.source, bench.target, np.int32(accesses))
    found = bench.copied_per_s(run, 2.0 * STREAMS * bench.stream_bytes)
    bench.check(width, run_bytes, accesses)
    yield name, found


def displaced(_: Limits) -> Iterator[Part]:
    """Benchmark copies whose loads or stores are displaced."""
    for one in measured.displaced():
        row = one.block if one.block < WARP else 0  # of a block that takes parts of several rows
        program = probe(
            streams=one.streams,
            access_bytes=one.access_bytes,
            run_bytes=one.run_bytes,
            row=row,
            threads=BLOCK if row else one.block,
        )
        yield Part("displaced_bytes_per_s", program, DISPLACED, partial(_displaced, one))


def shuffled(_: Limits) -> Iterator[Part]:
    """Benchmark displaced copies by vectors of elements, in runs of a warp or not."""
    for one in measured.shuffled():
        element, access, run = one.element_bytes, one.access_bytes, one.run_bytes
        program = shuffled_probe(element_bytes=element, access_bytes=access, run_bytes=run, threads=one.block)
        yield Part("shuffled_bytes_per_s", program, SHUFFLED, partial(_displaced, one))


def _displaced(one: Displaced, bench: GpuBench, kernel: Kernel) -> Figures:
    accesses, apart = walked(STREAMS * bench.stream_bytes // (one.streams * one.access_bytes))
    yield one.name, displaced_per_s(one, bench, kernel, accesses, apart, apart, WALK if one.walking else 1)


def displaced_per_s(one: Displaced, bench: GpuBench, kernel: Kernel, accesses: int, far: int, *numbers: int) -> float:
    """Return the bytes per second of a displaced copy. Raises RuntimeError if it moved something else.

    far: accesses from one that is displaced by rows to its own; numbers: last arguments of the kernel: the accesses
    between those of a thread, and how many it makes.
    """
    load, load_far, store, store_far = SIDES[one.side]
    sides = (load, load_far * far), (store, store_far * far)
    to = bench.source if one.side in IN_PLACE else bench.target
    blocks = ceil(accesses // numbers[-1] / kernel.launch.block[0])
    run = kernel.by(blocks, bench.source, to, *map(np.int32, (accesses, *sides[0], *sides[1], *numbers)))
    found = bench.copied_per_s(run, 2.0 * one.streams * one.access_bytes * accesses)
    if one.side not in IN_PLACE:
        by = (displacements(one.streams, near, one.elements * rows) for near, rows in sides)
        bench.check(one.element_bytes, one.run_bytes, accesses * one.elements, *by)
    return found


def listed(_: Limits) -> Iterator[Part]:
    """Benchmark copies by an index list, which is counted."""
    for access in WIDTHS:
        program = probe(access_bytes=access, threads=BLOCK)
        yield Part("listed_bytes_per_s", program, LISTED, partial(_listed, access))


def _listed(access: int, bench: GpuBench, kernel: Kernel) -> Figures:
    xp = bench.device.xp
    accesses = bench.stream_bytes // access // 2
    for far in (0, 1):
        row = (xp.arange(accesses, dtype=xp.uint32) + far) % accesses
        entries = xp.tile(row.astype(xp.uint32), STREAMS)
        for side, bits in _LISTED_SIDES.items():
            for ahead in (0,) if far else (0, _AHEAD):
                to = bench.source if side == "in place" else bench.target
                numbers = map(np.int32, (accesses, *bits, ahead))
                run = kernel.by(ceil(accesses / BLOCK), bench.source, to, entries, *numbers)
                found = bench.copied_per_s(run, STREAMS * accesses * (2.0 * access + WORD_BYTES))
                if side != "in place":
                    by = [far * np.full((STREAMS, 1), bit) for bit in bits]
                    bench.check(access, 0, accesses, *by)
                yield measured.listed_name(access, side, is_displaced=bool(far), ahead=bool(ahead)), found


def walked(accesses: int) -> tuple[int, int]:
    """Return the accesses that whole walks of threads make, and the accesses from one to the next."""
    apart = min(_FAR, accesses // WALK // GRANULE * GRANULE)
    return accesses // (WALK * apart) * (WALK * apart), apart


def displacements(streams: int, near: int, far: int) -> Array:
    """Return the accesses by which the kernel displaces each stream, shape (streams, 1)."""
    q = np.arange(streams)[:, None]
    return near * (q % 3 - 1) + far * (q // 3 % 3 - 1)
