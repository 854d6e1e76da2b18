"""Micro-benchmarks of a GPU: local memory, refetches from L2, and partial sectors."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import ceil, prod

import numpy as np

from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.codegen.probes import AGAIN, AGAIN_EACH, HOLES, PIECES, SPILL, SPILLED, WORD_BYTES, probe, spilled_probe
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.gpu_bench import CHECKED_EVERY, Figures, GpuBench, Part, shared_bytes
from lbmtune.measure.calibration.gpu_memory import WALK, walked
from lbmtune.measure.calibration.microbench import Kernel, check_moved
from lbmtune.measure.timing.state import all_true
from lbmtune.model.gpu.inputs import resident_threads
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import WALKING, WIDTHS
from lbmtune.model.machine.description import ACCESS_BYTES

L1_BYTES = 256 << 10
"""L1 cache and shared memory of a multiprocessor, of data centre GPUs from compute capability 8.0."""
SPILL_ROOM, _ALIGNED = 4096, 16
"""Bytes of local memory of a thread, and their alignment."""
SAMPLED_WORDS, _TOLERANCE = 1 << 20, 2e-3
"""Words of a copy with holes that are checked, and the tolerance of the share that is missing."""
_LOCAL = {"L1": (512, 192), "L2": (1024, 416), "memory": (2048, 1024)}
"""Threads of a multiprocessor and bytes of local memory of each: less than L1, less than L2, and more."""
_LOCAL_BLOCK, _LOCAL_TURNS = 128, 8
_REFETCH_BLOCK, _REFETCH_ACCESS, _HOLES_BLOCK, _SPILLED_BLOCK = 128, 16, 128, 128
_SPILLED_KIB = (0, 24, 48, 96, 144, 216, 312, 504, 1008)
"""Local memory of all threads of a multiprocessor."""


def spilled(_: Limits) -> Iterator[Part]:
    """Benchmark copies whose threads spill words to local memory, which are not counted."""
    for access in (*WIDTHS, ACCESS_BYTES):
        program = spilled_probe(access_bytes=access, local_bytes=SPILL_ROOM, threads=_SPILLED_BLOCK)
        yield Part("spilled_bytes_per_s", program, SPILLED, partial(_spilled, access))


def _spilled(access: int, bench: GpuBench, kernel: Kernel) -> Figures:
    threads = resident_threads(prod(kernel.launch.block), kernel.executable.resources, L1_BYTES)
    accesses, apart = walked(bench.stream_bytes // access)
    for kept, walking in product(_SPILLED_KIB, (False, True)):
        local, steps = kept * 1024 // threads // _ALIGNED * _ALIGNED, WALK if walking else 1
        numbers = map(np.int32, (accesses, local // WORD_BYTES, apart, steps))
        run = kernel.by(accesses // steps // _SPILLED_BLOCK, bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * access * accesses)
        bench.check(access, 0, accesses)
        yield f"{access} by {threads} of {local}{WALKING * walking}", found


def local(limits: Limits) -> Iterator[Part]:
    """Benchmark local memory, written and read."""
    for name, (threads, local_bytes) in _LOCAL.items():
        asked = shared_bytes(limits, threads, _LOCAL_BLOCK) if local_bytes * threads > L1_BYTES else 0
        program = probe(local_bytes=local_bytes, threads=_LOCAL_BLOCK, shared_bytes=asked)
        yield Part("local_bytes_per_s", program, SPILL, partial(_local, name, threads, local_bytes))


def _local(name: str, threads: int, local_bytes: int, bench: GpuBench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors * threads // _LOCAL_BLOCK
    run = kernel.by(blocks, bench.target, np.int32(_LOCAL_TURNS))
    yield name, bench.per_s(run, 2.0 * blocks * _LOCAL_BLOCK * local_bytes * _LOCAL_TURNS)


def l2_refetch(_: Limits) -> Iterator[Part]:
    """Benchmark tiles that are read again after other data has passed through the cache."""
    program = probe(access_bytes=_REFETCH_ACCESS, threads=_REFETCH_BLOCK)
    yield Part("again_bytes_per_s", program, AGAIN, _l2_refetch)


def _l2_refetch(bench: GpuBench, kernel: Kernel) -> Figures:
    tile_bytes = AGAIN_EACH * _REFETCH_ACCESS * _REFETCH_BLOCK
    tiles = STREAMS * bench.stream_bytes // tile_bytes
    at = np.arange(0, tiles * tile_bytes // WORD_BYTES, CHECKED_EVERY)
    for mib in measured.AGAIN_MIB:
        numbers = np.int32(tiles), np.int32((mib << 20) // (2 * tile_bytes) % tiles)
        run = kernel.by(tiles, bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * tiles * tile_bytes)
        check_moved(all_true(bench.target[at] == bench.source[at]))
        yield str(mib << 20), found


def holes(_: Limits) -> Iterator[Part]:
    """Benchmark copies of words with one hole per sector, in some of 64 sectors; holes are counted."""
    yield Part("holes_bytes_per_s", probe(threads=_HOLES_BLOCK), HOLES, _holes)


def _holes(bench: GpuBench, kernel: Kernel) -> Figures:
    accesses = bench.stream_bytes // WORD_BYTES
    for (where, to), left_out in product((("apart", bench.target), ("in place", bench.source)), measured.HOLES):
        numbers = np.int32(accesses), np.int32(left_out)
        run = kernel.by(ceil(accesses / _HOLES_BLOCK), bench.source, to, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * bench.stream_bytes)
        lacking = float((bench.target[:SAMPLED_WORDS] != bench.source[:SAMPLED_WORDS]).mean())
        check_moved(to is bench.source or abs(lacking - left_out / 64 * WORD_BYTES / SECTOR_BYTES) <= _TOLERANCE)
        yield f"{where} {left_out}", found


def pieces(_: Limits) -> Iterator[Part]:
    """Benchmark copies of words that store some of 64 sectors in two pieces, with other accesses in between."""
    yield Part("pieces_bytes_per_s", probe(threads=_HOLES_BLOCK), PIECES, _pieces)


def _pieces(bench: GpuBench, kernel: Kernel) -> Figures:
    for later, count in product(measured.LATER, measured.PIECES):
        accesses = bench.stream_bytes // WORD_BYTES // (2 * later) * 2 * later
        numbers = map(np.int32, (accesses, count, later))
        run = kernel.by(ceil(accesses / _HOLES_BLOCK), bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * WORD_BYTES * accesses)
        at = np.arange(min(SAMPLED_WORDS, accesses))
        stayed, swapped = (bench.target[at] == bench.source[from_] for from_ in (at, at ^ later))
        share = count / 64 * WORD_BYTES / SECTOR_BYTES
        check_moved(all_true(stayed | swapped) and abs(float((~stayed).mean()) - share) <= _TOLERANCE)
        yield f"{2 * STREAMS * WORD_BYTES * later} {count}", found
