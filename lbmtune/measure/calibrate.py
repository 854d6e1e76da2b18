"""What bounds kernels on a GPU besides the bandwidth of aligned streams, from micro-benchmarks without a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import ceil
from typing import NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device, Executable
from lbmtune.codegen.probes import RUNS, SPILL, WORD_BYTES, probe
from lbmtune.codegen.program import Launch
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.microbench import Say, rate
from lbmtune.measure.noise import fill_with_noise
from lbmtune.model.machine import Calibration

_STREAM_BYTES = 48 << 20
"""Of a stream: all of them together are far larger than any cache."""
_CACHED_SHARE = 1 / 4
"""Of the L2 cache, what copies within it touch: far parts of it hold what near ones hold, too."""
_RUNS = ("2", "4", "8", "16", "2 of 2", "4 of 4", "8 of 8", "2 of 64", "2 of 128", "2 of 256")
_WIDE_RUNS = tuple(f"{access} of {run}" for access in (4, 8, 16) for run in (128, 256, 512, 1024))
_THREADS = {
    2: (256, 512, 768, 1024, 1536),
    4: (128, 256, 384, 512, 768, 1024, 1536),
    8: (128, 256, 384, 512, 768, 1024),
    16: (64, 128, 192, 256, 384, 512),
}
_BLOCKS = (32, 64, 128, 256, 512)
_BLOCK, _BLOCK_BYTES = 64, 1 << 10
"""Threads of a block, and what the system keeps of the shared memory of each."""
_L1_BYTES = 256 << 10
"""Of a multiprocessor since compute capability 8.0 of data centre cards, shared memory included."""
_LOCAL = {"L1": (512, 192), "L2": (1024, 320), "memory": (2048, 1024)}
"""Threads of a multiprocessor, and bytes of local memory of each: less than L1 has, less than L2, and more."""
_LOCAL_BLOCK, _LOCAL_TURNS = 128, 8
_CACHED_TURNS, _LAUNCHES = 64, 200


class _Copy(NamedTuple):
    """A copy of streams: accesses, how streams lie, threads per block and per multiprocessor (0: as many as fit)."""

    access_bytes: int
    run_bytes: int = 0
    block: int = 128
    together: int = 0
    load: int = 0
    store: int = 0
    in_place: bool = False


def calibrate(device: Device, compiler: Compiler, say: Say) -> Calibration:
    """Runs all of them: about half a minute. Raises what the device raises."""
    bench = _Bench(device, compiler)

    def each(what: str, copies: Iterable[tuple[str, _Copy]]) -> dict[str, float]:
        say(what)
        return {name: bench.copy(one) for name, one in copies}

    def by_block(load: int, store: int) -> list[tuple[str, _Copy]]:
        return [(str(block), _Copy(4, block=block, load=load, store=store)) for block in _BLOCKS]

    by_threads = [
        (f"{access} by {count}", _Copy(access, block=_BLOCK, together=count))
        for access, counts in _THREADS.items()
        for count in counts
    ]
    runs = each("copies of streams that lie in runs", ((name, _run(name)) for name in (*_RUNS, *_WIDE_RUNS)))
    threads = each("copies by fewer threads", by_threads)
    blocks = each("copies by blocks of several sizes", by_block(0, 0))
    say("streams read and written in place")
    in_place = {
        **{str(access): bench.copy(_Copy(access, in_place=True)) for access in _THREADS},
        **{f"4 displaced by {block}": bench.copy(_Copy(4, 0, block, 0, 1, 1, in_place=True)) for block in _BLOCKS},
    }
    loads = each("copies with displaced loads", by_block(1, 0))
    stores = each("copies with displaced stores", by_block(0, 1))
    say("copies within the cache, local memory, launches")
    plain, graph = bench.launches()
    return Calibration(
        runs_bytes_per_s=runs,
        threads_bytes_per_s=threads,
        blocks_bytes_per_s=blocks,
        shifted_loads_bytes_per_s=loads,
        shifted_stores_bytes_per_s=stores,
        in_place_bytes_per_s=in_place,
        cache_bytes_per_s={str(access): bench.cached(access) for access in _THREADS},
        local_bytes_per_s={name: bench.local(*shape) for name, shape in _LOCAL.items()},
        l1_bytes=_L1_BYTES,
        launch_s=plain,
        launch_in_graph_s=graph,
    )


def _run(name: str) -> _Copy:
    access, _, run = name.partition(" of ")
    return _Copy(int(access), int(run or 0))


class _Bench:
    def __init__(self, device: Device, compiler: Compiler) -> None:
        self._device, self._compiler = device, compiler
        self._source, self._target = (device.empty(STREAMS * _STREAM_BYTES // WORD_BYTES, "float32") for _ in range(2))
        fill_with_noise(self._source, 1.0, device.xp)

    def copy(self, one: _Copy) -> float:
        """Bytes per second, read and written. What was moved is checked."""
        accesses = _STREAM_BYTES // one.access_bytes
        shared = self._shared_bytes(one.together, one.block)
        run = self._runs(one, accesses, shared, 1)
        self._target.fill(0)
        found = rate(self._device, run, 2.0 * STREAMS * _STREAM_BYTES)
        if not one.in_place:
            self._check(one)
        return found.bytes_per_s

    def cached(self, access_bytes: int) -> float:
        """Of copies that touch a part of the L2 cache, again and again in one launch."""
        cache = getattr(self._device, "caches_bytes", {}).get("L2", _STREAM_BYTES)
        accesses = int(cache * _CACHED_SHARE) // (2 * STREAMS * access_bytes)
        run = self._runs(_Copy(access_bytes), accesses, 0, _CACHED_TURNS)
        return rate(self._device, run, 2.0 * STREAMS * accesses * access_bytes * _CACHED_TURNS).bytes_per_s

    def local(self, threads: int, local_bytes: int) -> float:
        """Of local memory: so many bytes of each of so many threads of a multiprocessor."""
        shared = self._shared_bytes(threads, _LOCAL_BLOCK) if local_bytes * threads > _L1_BYTES else 0
        executable, launch = self._loaded(SPILL, threads=_LOCAL_BLOCK, local_bytes=local_bytes, shared_bytes=shared)
        blocks = self._device.limits.multiprocessors * threads // _LOCAL_BLOCK
        run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, np.int32(_LOCAL_TURNS)))
        return rate(self._device, run, 2.0 * blocks * _LOCAL_BLOCK * local_bytes * _LOCAL_TURNS).bytes_per_s

    def launches(self) -> tuple[float, float]:
        """Seconds of a launch that does next to nothing, one after another, and in a graph."""
        run = self._runs(_Copy(4), _BLOCK, 0, 1)

        def many() -> None:
            for _ in range(_LAUNCHES):
                run()

        executable, _ = self._loaded(RUNS)
        plain, graph = (self._shortest_s(one) / _LAUNCHES for one in (many, executable.recorded(many)))
        return plain, graph

    def _shortest_s(self, run: Callable[[], None]) -> float:
        return min(self._device.time_s(run) for _ in range(5))

    def _runs(self, one: _Copy, accesses: int, shared_bytes: int, turns: int) -> Callable[[], None]:
        executable, launch = self._loaded(
            RUNS,
            access_bytes=one.access_bytes,
            run_bytes=one.run_bytes,
            threads=one.block,
            shared_bytes=shared_bytes,
        )
        numbers = (np.int32(n) for n in (accesses, one.load, one.store, turns))
        arrays = self._source, self._source if one.in_place else self._target
        return partial(executable.launch, launch, (ceil(accesses / one.block), 1, 1), (*arrays, *numbers))

    def _loaded(self, entry: str, **options: int) -> tuple[Executable, Launch]:
        program = probe(streams=STREAMS, **options)
        executable = self._device.load(program, self._compiler(program))
        return executable, next(launch for launch in program.period[0] if launch.entry == entry)

    def _shared_bytes(self, threads: int, block: int) -> int:
        """What a block asks for so that so many threads share a multiprocessor, and no more."""
        if not threads:
            return 0
        limits = self._device.limits
        blocks = threads // block
        return min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor // blocks - _BLOCK_BYTES)

    def _check(self, one: _Copy) -> None:
        """Whether target and source agree at some places, a stream being displaced as a whole where sides are."""
        if one.load or one.store:
            size = _STREAM_BYTES // WORD_BYTES
            source, target = (array.reshape(STREAMS, size)[:, 1 : size - 1] for array in (self._source, self._target))
            shift = one.store - one.load
            found, wanted = target[:, 1:-1], source[:, 1 - shift : source.shape[1] - 1 - shift]
        else:
            found, wanted = self._target, self._source
        stride: Array = (slice(None, None, 99991),)
        if not bool((found[(..., *stride)] == wanted[(..., *stride)]).all()):
            raise RuntimeError("a calibration kernel did not move what it should; its figure would mean nothing")
