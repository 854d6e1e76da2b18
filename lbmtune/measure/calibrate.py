"""What bounds kernels on a GPU besides the bandwidth of aligned streams, from micro-benchmarks without a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Compiler, Device, Executable
from lbmtune.codegen.probes import (
    CHASE,
    LISTED,
    MEET,
    RUNS,
    SPILL,
    STAGES,
    WALK,
    WORD_BYTES,
    issue_probe,
    probe,
)
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.microbench import Rate, Say, rate
from lbmtune.measure.noise import fill_with_noise
from lbmtune.model.machine import Calibration

_STREAM_BYTES = 48 << 20
"""Of a stream: all of them together are far larger than any cache."""
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
_LOCAL = {"L1": (512, 192), "L2": (1024, 416), "memory": (2048, 1024)}
"""Threads of a multiprocessor, and bytes of local memory of each: less than L1 has, less than L2, and more."""
_LOCAL_BLOCK, _LOCAL_TURNS = 128, 8
_DISPLACED = ("2", "2 of 64", "4 of 128", "8", "8 of 256")
_DISPLACED_BLOCKS = (64, 256)
_SIDES = {"none": (0, 0, False), "loads": (1, 0, False), "stores": (0, 1, False), "in place": (1, 1, True)}
"""Accesses by which loads and stores are displaced, and whether both are of one array."""
_WALK, _WALK_BYTES = 8, 256 << 10
"""Accesses that a thread takes one after another, and bytes of a stream from one to the next."""
_WALKING = {2: (512, 1024), 4: (256, 512, 1024), 8: (256, 512, 1024), 16: (128, 256, 512)}
_LISTED_SIDES = {"loads": 1, "stores": 2, "in place": 3}
_CHASED_BYTES = _STREAM_BYTES * 8
"""That pointers lead through, a line after the other."""
_CHASE_STEPS, _LINE_BYTES = 1 << 14, 128
_WARPS = (4, 8, 12, 16, 24, 32)
_CHAINS = 8
_LENGTH, _STAGES = 128, 2000
"""Instructions between two meetings, and turns."""
_MEETINGS, _MEETING_THREADS = 500, 256
_SMALL_EDGES = (32, 48, 64, 96, 128)
"""Of cubes of words whose copies are small."""
_SMALL_LAUNCHES, _SMALL_BLOCK = 50, 128
_SAMPLES, _WARMUP_S = 5, 0.02
"""Fewer than of the bandwidths that kernels are held against: there are many figures."""
_STRIDE = 99991
"""From one place that is checked to the next."""


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
    """Runs all of them: less than a minute. Raises what the device raises."""
    bench = _Bench(device, compiler)

    def each(what: str, copies: Iterable[tuple[str, _Copy]]) -> dict[str, float]:
        say(what)
        return {name: bench.copy(one) for name, one in copies}

    def by_block(load: int, store: int, in_place: bool = False) -> list[tuple[str, _Copy]]:
        return [(str(block), _Copy(4, 0, block, 0, load, store, in_place)) for block in _BLOCKS]

    by_threads = [
        (f"{access} by {count}", _Copy(access, block=_BLOCK, together=count))
        for access, counts in _THREADS.items()
        for count in counts
    ]
    runs = each("copies of streams that lie in runs", ((name, _run(name)) for name in (*_RUNS, *_WIDE_RUNS)))
    threads = each("copies by fewer threads", by_threads)
    blocks = each("copies by blocks of several sizes", by_block(0, 0))
    loads = each("copies with displaced loads", by_block(1, 0))
    stores = each("copies with displaced stores", by_block(0, 1))
    both = each("copies with both sides displaced, in place", by_block(1, 1, in_place=True))
    displaced = each(
        "displaced copies of other widths and runs",
        (
            (f"{name} {side} by {block}", _run(name)._replace(block=block, load=load, store=store, in_place=in_place))
            for name in _DISPLACED
            for side, (load, store, in_place) in _SIDES.items()
            for block in _DISPLACED_BLOCKS
        ),
    )
    say("copies by walking threads, and by lists")
    walk = {f"{a} by {count}": bench.walk(a, count) for a, counts in _WALKING.items() for count in counts}
    listed = bench.by_lists()
    say("issue of instructions, latencies, meetings of blocks")
    instructions = dict(bench.instructions())
    latency, meeting = bench.latency_s(), bench.meeting_s()
    say("local memory, small copies")
    return Calibration(
        runs_bytes_per_s=runs,
        threads_bytes_per_s=threads,
        blocks_bytes_per_s=blocks,
        shifted_loads_bytes_per_s=loads,
        shifted_stores_bytes_per_s=stores,
        shifted_both_bytes_per_s=both,
        local_bytes_per_s={name: bench.local(*shape) for name, shape in _LOCAL.items()},
        l1_bytes=_L1_BYTES,
        displaced_bytes_per_s=displaced,
        walk_bytes_per_s=walk,
        listed_bytes_per_s=listed,
        latency_s=latency,
        instructions_per_s=instructions,
        meeting_s=meeting,
        small_s=dict(bench.small()),
    )


def _run(name: str) -> _Copy:
    access, _, run = name.partition(" of ")
    return _Copy(int(access), int(run or 0))


class _Bench:
    def __init__(self, device: Device, compiler: Compiler) -> None:
        self._device, self._compiler = device, compiler
        self._source, self._target = (device.empty(STREAMS * _STREAM_BYTES // WORD_BYTES, "float32") for _ in range(2))
        fill_with_noise(self._source, 1.0, device.xp)
        self._binaries: dict[str, Binary] = {}

    def copy(self, one: _Copy) -> float:
        """Bytes per second, read and written. What was moved is checked."""
        accesses = _STREAM_BYTES // one.access_bytes
        shared = self._shared_bytes(one.together, one.block)
        run = self._runs(one, accesses, shared, 1)
        self._target.fill(0)
        found = self._rate(run, 2.0 * STREAMS * _STREAM_BYTES)
        if not one.in_place:
            self._check(one, accesses)
        return found.bytes_per_s

    def local(self, threads: int, local_bytes: int) -> float:
        """Of local memory: so many bytes of each of so many threads of a multiprocessor."""
        shared = self._shared_bytes(threads, _LOCAL_BLOCK) if local_bytes * threads > _L1_BYTES else 0
        executable, launch = self._loaded(SPILL, threads=_LOCAL_BLOCK, local_bytes=local_bytes, shared_bytes=shared)
        blocks = self._device.limits.multiprocessors * threads // _LOCAL_BLOCK
        run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, np.int32(_LOCAL_TURNS)))
        return self._rate(run, 2.0 * blocks * _LOCAL_BLOCK * local_bytes * _LOCAL_TURNS).bytes_per_s

    def walk(self, access_bytes: int, together: int) -> float:
        """Bytes per second where each thread takes accesses one after another. What was moved is checked."""
        accesses, apart = _STREAM_BYTES // access_bytes, min(_WALK_BYTES, _STREAM_BYTES // _WALK) // access_bytes
        executable, launch = self._loaded(
            WALK, access_bytes=access_bytes, threads=_BLOCK, shared_bytes=self._shared_bytes(together, _BLOCK)
        )
        numbers = (np.int32(n) for n in (accesses, apart, _WALK))
        threads = ceil(accesses / (apart * _WALK)) * apart
        run = partial(executable.launch, launch, (ceil(threads / _BLOCK), 1, 1), (self._source, self._target, *numbers))
        self._target.fill(0)
        found = self._rate(run, 2.0 * STREAMS * _STREAM_BYTES)
        self._check(_Copy(access_bytes), accesses)
        return found.bytes_per_s

    def by_lists(self) -> dict[str, float]:
        """Bytes per second, the list counted, of copies that find their place in one."""
        xp, found = self._device.xp, {}
        for access in (2, 4, 8):
            accesses = _STREAM_BYTES // access // 2
            for displaced in (0, 1):
                row = (xp.arange(accesses, dtype=xp.uint32) + displaced) % accesses
                entries = xp.tile(row.astype(xp.uint32), STREAMS)
                for side, bits in _LISTED_SIDES.items():
                    executable, launch = self._loaded(LISTED, access_bytes=access, threads=128, listed=bits)
                    arrays = self._source, self._source if side == "in place" else self._target, entries
                    grid = (ceil(accesses / 128), 1, 1)
                    run = partial(executable.launch, launch, grid, (*arrays, np.int32(accesses)))
                    moved = STREAMS * accesses * (2.0 * access + WORD_BYTES)
                    name = f"{access} {side}" + (" displaced" if displaced else "")
                    found[name] = self._rate(run, moved).bytes_per_s
                    if side == "loads":
                        self._check(_Copy(access, load=displaced), accesses)
                    if side == "stores":
                        self._check(_Copy(access, store=displaced), accesses)
        return found

    def instructions(self) -> Iterator[tuple[str, float]]:
        """Instructions of warps per second, of the whole device, by name."""
        for kind, number in (
            ("multiply-add", "double"),
            ("conversion", "float"),
            ("shuffle", "float"),
            ("shared memory", "float"),
        ):
            yield number if number == "double" else kind, self._issued(_WARPS[-1], kind=kind, number=number)
        for warps in _WARPS:
            yield f"multiply-add, {warps} warps of {_CHAINS}", self._issued(warps)
            yield f"multiply-add, {warps} warps of {_CHAINS}, meeting", self._issued(warps, meets=True)

    def _issued(self, warps: int, **options: Any) -> float:
        blocks = self._device.limits.multiprocessors
        program = issue_probe(threads=32 * warps, chains=_CHAINS, length=_LENGTH // _CHAINS, **options)
        executable, launch = self._ready(program, STAGES)
        factor = (np.float64 if options.get("number") == "double" else np.float32)(0.5)
        run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, factor, np.int32(_STAGES)))
        per_s = self._rate(run, float(blocks * warps * _LENGTH * _STAGES)).bytes_per_s
        return per_s * (2 if options.get("kind") in ("conversion", "shared memory") else 1)  # there and back

    def latency_s(self) -> float:
        """Of a load from memory that waits for the one before."""
        xp = self._device.xp
        line = _LINE_BYTES // WORD_BYTES
        places = xp.arange(_CHASED_BYTES // WORD_BYTES, dtype=xp.uint32)
        following = ((places + line) % places.size).astype(xp.uint32)
        executable, launch = self._loaded(CHASE, threads=1)
        place = self._device.empty(1, "uint32")
        place.fill(0)
        run = partial(executable.launch, launch, (1, 1, 1), (following, place, np.int32(_CHASE_STEPS)))
        return 1 / self._rate(run, _CHASE_STEPS).bytes_per_s

    def meeting_s(self) -> float:
        """From what a block sends to what it then reads of another one, one block on each multiprocessor."""
        blocks = self._device.limits.multiprocessors
        words = self._device.empty(3 * blocks * _MEETING_THREADS, "uint32")
        arrivals = self._device.empty(2, "uint32")
        arrivals.fill(0)
        executable, launch = self._ready(issue_probe(threads=_MEETING_THREADS), MEET)
        run = partial(executable.launch, launch, (blocks, 1, 1), (words, arrivals, np.int32(_MEETINGS)))
        return 1 / self._rate(run, _MEETINGS).bytes_per_s

    def small(self) -> Iterator[tuple[str, float]]:
        """Seconds of a launch that copies little, launch after launch, there and back."""
        for edge in _SMALL_EDGES:
            for name in ("call", "graph", "dependent"):
                executable, launch = self._loaded(RUNS, threads=_SMALL_BLOCK, early=name == "dependent")
                there, back = (
                    self._small(executable, launch, edge**3, sides)
                    for sides in ((self._source, self._target), (self._target, self._source))
                )
                many = partial(_alternate, there, back, _SMALL_LAUNCHES // 2)
                run = many if name == "call" else executable.recorded(many)
                yield f"{name} {2 * STREAMS * WORD_BYTES * edge**3}", self._shortest_s(run) / _SMALL_LAUNCHES

    def _small(
        self, executable: Executable, launch: Launch, accesses: int, sides: tuple[Array, Array]
    ) -> Callable[[], None]:
        numbers = tuple(np.int32(n) for n in (accesses, 0, 0, 1))
        return partial(executable.launch, launch, (ceil(accesses / _SMALL_BLOCK), 1, 1), (*sides, *numbers))

    def _rate(self, run: Callable[[], None], moved: float) -> Rate:
        return rate(self._device, run, moved, _SAMPLES, _WARMUP_S)

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

    def _loaded(self, entry: str, **options: Any) -> tuple[Executable, Launch]:
        return self._ready(probe(streams=STREAMS, **options), entry)

    def _ready(self, program: Program, entry: str) -> tuple[Executable, Launch]:
        """Each text is compiled once."""
        if program.digest not in self._binaries:
            self._binaries[program.digest] = self._compiler(program)
        executable = self._device.load(program, self._binaries[program.digest])
        return executable, next(one for one in program.period[0] if one.entry == entry)

    def _shared_bytes(self, threads: int, block: int) -> int:
        """What a block asks for so that so many threads share a multiprocessor, and no more."""
        if not threads:
            return 0
        limits = self._device.limits
        blocks = threads // block
        return min(limits.shared_bytes_per_block, limits.shared_bytes_per_multiprocessor // blocks - _BLOCK_BYTES)

    def _check(self, one: _Copy, accesses: int) -> None:
        """Whether target and source agree at some places, each stream being rotated by what the sides are displaced."""
        xp, width = self._device.xp, one.access_bytes
        at = np.arange(0, accesses, _STRIDE)
        there, here = (
            xp.asarray(_places((at + by) % accesses, accesses, one.run_bytes // width)) for by in (one.load, one.store)
        )
        source, target = (array.view("uint16").reshape(-1, width // 2) for array in (self._source, self._target))
        if not bool((target[here] == source[there]).all()):
            raise RuntimeError("a calibration kernel did not move what it should; its figure would mean nothing")


def _places(at: Array, accesses: int, run: int) -> Array:
    """Where accesses of all streams lie: as many of one together as a run has, 0: all of them."""
    stream = np.arange(STREAMS)[:, None]
    length = run or accesses
    return ((at // length) * STREAMS + stream) * length + at % length


def _alternate(there: Callable[[], None], back: Callable[[], None], times: int) -> None:
    for _ in range(times):
        there()
        back()
