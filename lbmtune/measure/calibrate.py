"""What bounds kernels on a GPU besides the bandwidth of aligned streams, from micro-benchmarks without a lattice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Array, Binary, Compiler, Device, Executable
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import SECTOR_BYTES
from lbmtune.codegen.probes import (
    AGAIN,
    AGAIN_EACH,
    CHASE,
    DISPLACED,
    EXCHANGED,
    HOLES,
    LISTED,
    MEET,
    MEETINGS,
    PIECES,
    RUNS,
    SHUFFLED,
    SPILL,
    SPILLED,
    STAGES,
    WORD_BYTES,
    exchange_probe,
    issue_probe,
    probe,
    shuffled_probe,
    spilled_probe,
)
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.microbench import Rate, Say, rate
from lbmtune.measure.noise import fill_with_noise
from lbmtune.model import measured
from lbmtune.model.machine import ACCESS_BYTES, Calibration
from lbmtune.model.measured import BLOCK, WALKING, WIDTHS, Displaced
from lbmtune.model.occupancy import threads_together

_WARP, _GRANULE = 32, 256
"""Threads of a warp; what numbers of accesses are multiples of."""
_STREAM_BYTES = 48 << 20
"""Of a stream: all of them together are far larger than any cache."""
_BLOCK_BYTES = 1 << 10
"""What the system keeps of the shared memory of each block."""
_L1_BYTES = 256 << 10
"""Of a multiprocessor since compute capability 8.0 of data centre cards, shared memory included."""
_LOCAL = {"L1": (512, 192), "L2": (1024, 416), "memory": (2048, 1024)}
"""Threads of a multiprocessor, and bytes of local memory of each: less than L1 has, less than L2, and more."""
_LOCAL_BLOCK, _LOCAL_TURNS = 128, 8
_FAR = 1 << 16
"""Accesses that lie between one that a stream is displaced by rows and its own."""
_SIDES = {
    "none": (0, 0, 0, 0),
    "stay": (0, 0, 0, 0),
    "rows": (0, 1, 0, 1),
    "loads": (1, 1, 0, 0),
    "stores": (0, 0, 1, 1),
    "in place": (1, 1, 1, 1),
}
"""Accesses, and rows, by which loads and by which stores are displaced; both: those of one array."""
_IN_PLACE = ("stay", "rows", "in place")
"""Of which what is loaded goes back to where it was."""
_WALK = 8
"""Accesses that a thread takes one after another, as far apart as rows are."""
_AHEAD = 1 << 16
"""Accesses ahead of which entries of a list are asked for."""
_LISTED_SIDES = {"loads": (1, 0), "stores": (0, 1), "in place": (1, 1)}
_CHASED_BYTES, _CHASED_IN_L2 = _STREAM_BYTES * 8, 8 << 20
"""That pointers lead through, a line after the other: more than any cache has, and more than L1 and less than L2."""
_CHASE_STEPS, _LINE_BYTES = 1 << 14, 128
_LENGTH, _STAGES = 128, 2000
"""Instructions between two meetings, and turns."""
_MEETINGS, _MEETING_THREADS = 500, 256
_EXCHANGE_LENGTH = 256
"""Instructions between two exchanges."""
_SMALL_LAUNCHES, _SMALL_BLOCK = 50, 128
_AGAIN_ACCESS, _AGAIN_BLOCK = 16, 128
_HOLES_BLOCK = 128
_LOOKED_AT, _NEARLY = 1 << 20, 2e-3
"""Words of a copy with holes, and how near the share of those that are missing has to be to what was asked for."""
_SPILLED_BLOCK, _SPILLED_ROOM, _ALIGNED = 128, 4096, 16
"""Threads of a block, and bytes of local memory that a thread has room for, and takes at once."""
_SPILLED_KIB = (0, 24, 48, 96, 144, 216, 312, 504, 1008)
"""Of local memory that all threads of a multiprocessor keep."""
_SAMPLES, _SAMPLE_S, _WARMUP_S = 5, 0.004, 0.01
"""Fewer than of the bandwidths that kernels are held against: there are many figures."""
_STRIDE = 99991
"""From one place that is checked to the next."""
_NOT_MOVED = "a calibration kernel did not move what it should; its figure would mean nothing"


class _Copy(NamedTuple):
    """A copy of streams: accesses, how streams lie, threads per block and per multiprocessor (0: as many as fit)."""

    access_bytes: int
    run_bytes: int = 0
    block: int = 128
    together: int = 0


def calibrate(device: Device, compiler: Compiler, say: Say) -> Calibration:
    """Runs all of them: less than a minute. Raises what the device raises."""
    bench = _Bench(device, compiler)

    def each(what: str, copies: Iterable[tuple[str, _Copy]]) -> dict[str, float]:
        say(what)
        return {name: bench.copy(one) for name, one in copies}

    by_threads = [
        (f"{access} by {count}", _Copy(access, block=BLOCK, together=count))
        for access, counts in measured.THREADS.items()
        for count in counts
    ]
    runs = each("copies of streams that lie in runs", ((name, _run(name)) for name in measured.RUNS))
    threads = each("copies by fewer threads", by_threads)
    say("displaced copies")
    displaced = {one.name: bench.displaced(one) for one in measured.displaced()}
    say("displaced copies by vectors, copies that spill")
    shuffled, spilled = dict(bench.shuffled()), dict(bench.spilled())
    say("copies by lists")
    listed = dict(bench.by_lists())
    say("issue of instructions, latencies, meetings of blocks")
    instructions, stages = dict(bench.instructions()), dict(bench.stages())
    latency, l2_latency, meeting = bench.latency_s(_CHASED_BYTES), bench.latency_s(_CHASED_IN_L2), bench.meeting_s()
    say("local memory, small copies, tiles that are read again, sectors with holes")
    return Calibration(
        runs_bytes_per_s=runs,
        threads_bytes_per_s=threads,
        local_bytes_per_s={name: bench.local(*shape) for name, shape in _LOCAL.items()},
        l1_bytes=_L1_BYTES,
        displaced_bytes_per_s=displaced,
        listed_bytes_per_s=listed,
        latency_s=latency,
        l2_latency_s=l2_latency,
        instructions_per_s=instructions,
        stages_s=stages,
        meeting_s=meeting,
        small_s=dict(bench.small()),
        again_bytes_per_s={str(mib << 20): bench.again(mib << 20) for mib in measured.AGAIN_MIB},
        holes_bytes_per_s={
            f"{'in place' if in_place else 'apart'} {holes}": bench.holes(holes, in_place)
            for in_place in (False, True)
            for holes in measured.HOLES
        },
        pieces_bytes_per_s={
            f"{2 * STREAMS * WORD_BYTES * later} {pieces}": bench.pieces(pieces, later)
            for later in measured.LATER
            for pieces in measured.PIECES
        },
        spilled_bytes_per_s=spilled,
        shuffled_bytes_per_s=shuffled,
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
        executable, launch = self._loaded(
            RUNS,
            access_bytes=one.access_bytes,
            run_bytes=one.run_bytes,
            threads=one.block,
            shared_bytes=shared,
        )
        arrays = self._source, self._target
        run = partial(executable.launch, launch, (ceil(accesses / one.block), 1, 1), (*arrays, np.int32(accesses)))
        self._target.fill(0)
        found = self._rate(run, 2.0 * STREAMS * _STREAM_BYTES)
        self._check(one.access_bytes, one.run_bytes, accesses)
        return found.bytes_per_s

    def displaced(self, one: Displaced) -> float:
        """The same of copies whose sides are displaced."""
        width, steps = one.access_bytes, _WALK if one.walking else 1
        row = one.block if one.block < _WARP else 0  # of a block that takes parts of several rows
        threads = BLOCK if row else one.block
        executable, launch = self._loaded(
            DISPLACED, streams=one.streams, access_bytes=width, run_bytes=one.run_bytes, row=row, threads=threads
        )
        accesses, apart = _walked(STREAMS * _STREAM_BYTES // (one.streams * width))
        load, load_far, store, store_far = _SIDES[one.side]
        load_far, store_far = (far * apart for far in (load_far, store_far))
        numbers = (np.int32(n) for n in (accesses, load, load_far, store, store_far, apart, steps))
        arrays = self._source, self._source if one.side in _IN_PLACE else self._target
        run = partial(executable.launch, launch, (accesses // steps // threads, 1, 1), (*arrays, *numbers))
        self._target.fill(0)
        found = self._rate(run, 2.0 * one.streams * width * accesses)
        if one.side not in _IN_PLACE:
            by = (load, load_far), (store, store_far)
            self._check(width, one.run_bytes, accesses, *(_amounts(one.streams, *side) for side in by))
        return found.bytes_per_s

    def shuffled(self) -> Iterator[tuple[str, float]]:
        """Bytes per second of displaced copies by vectors of elements, in runs of a warp or not."""
        for one in measured.shuffled():
            element, access, run = one.element_bytes, one.access_bytes, one.run_bytes
            steps = _WALK if one.walking else 1
            accesses, apart = _walked(_STREAM_BYTES // access)
            row = apart * access // element
            program = shuffled_probe(element_bytes=element, access_bytes=access, run_bytes=run, threads=one.block)
            executable, launch = self._ready(program, SHUFFLED)
            load, load_far, store, store_far = _SIDES[one.side]
            arrays = self._source, self._source if one.side in _IN_PLACE else self._target
            numbers = map(np.int32, (accesses, load, load_far * apart, store, store_far * apart, apart, steps))
            copy = partial(executable.launch, launch, (accesses // steps // one.block, 1, 1), (*arrays, *numbers))
            self._target.fill(0)
            yield one.name, self._rate(copy, 2.0 * STREAMS * access * accesses).bytes_per_s
            if one.side not in _IN_PLACE:
                by = (_amounts(STREAMS, near, far * row) for near, far in ((load, load_far), (store, store_far)))
                self._check(element, run, accesses * access // element, *by)

    def spilled(self) -> Iterator[tuple[str, float]]:
        """Bytes per second of copies whose threads keep words in local memory, which are not counted."""
        for access in (*WIDTHS, ACCESS_BYTES):
            program = spilled_probe(access_bytes=access, local_bytes=_SPILLED_ROOM, threads=_SPILLED_BLOCK)
            executable, launch = self._ready(program, SPILLED)
            threads = threads_together(CudaConfig(block=launch.block), executable.resources, _L1_BYTES)
            accesses, apart = _walked(_STREAM_BYTES // access)
            for kept, walking in product(_SPILLED_KIB, (False, True)):
                local, steps = kept * 1024 // threads // _ALIGNED * _ALIGNED, _WALK if walking else 1
                numbers = map(np.int32, (accesses, local // WORD_BYTES, apart, steps))
                grid = accesses // steps // _SPILLED_BLOCK, 1, 1
                copy = partial(executable.launch, launch, grid, (self._source, self._target, *numbers))
                self._target.fill(0)
                found = self._rate(copy, 2.0 * STREAMS * access * accesses)
                yield f"{access} by {threads} of {local}{WALKING * walking}", found.bytes_per_s
                self._check(access, 0, accesses)

    def local(self, threads: int, local_bytes: int) -> float:
        """Of local memory: so many bytes of each of so many threads of a multiprocessor."""
        shared = self._shared_bytes(threads, _LOCAL_BLOCK) if local_bytes * threads > _L1_BYTES else 0
        executable, launch = self._loaded(SPILL, threads=_LOCAL_BLOCK, local_bytes=local_bytes, shared_bytes=shared)
        blocks = self._device.limits.multiprocessors * threads // _LOCAL_BLOCK
        run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, np.int32(_LOCAL_TURNS)))
        return self._rate(run, 2.0 * blocks * _LOCAL_BLOCK * local_bytes * _LOCAL_TURNS).bytes_per_s

    def by_lists(self) -> Iterator[tuple[str, float]]:
        """Bytes per second, the list counted, of copies that find their place in one."""
        xp = self._device.xp
        for access, displaced in product(WIDTHS, (0, 1)):
            accesses = _STREAM_BYTES // access // 2
            row = (xp.arange(accesses, dtype=xp.uint32) + displaced) % accesses
            entries = xp.tile(row.astype(xp.uint32), STREAMS)
            for side, bits in _LISTED_SIDES.items():
                for ahead in (0,) if displaced else (0, _AHEAD):
                    executable, launch = self._loaded(LISTED, access_bytes=access, threads=BLOCK)
                    arrays = self._source, self._source if side == "in place" else self._target, entries
                    numbers = (np.int32(n) for n in (accesses, *bits, ahead))
                    run = partial(executable.launch, launch, (ceil(accesses / BLOCK), 1, 1), (*arrays, *numbers))
                    moved = STREAMS * accesses * (2.0 * access + WORD_BYTES)
                    name = measured.listed_name(access, side, is_displaced=bool(displaced), ahead=bool(ahead))
                    yield name, self._rate(run, moved).bytes_per_s
                    if side != "in place":
                        by = [displaced * np.full((STREAMS, 1), bit) for bit in bits]
                        self._check(access, 0, accesses, *by)

    def instructions(self) -> Iterator[tuple[str, float]]:
        """Instructions of warps per second, of the whole device, by name."""
        for kind, number in (
            ("multiply-add", "double"),
            ("conversion", "float"),
            ("shuffle", "float"),
            ("shared memory", "float"),
        ):
            yield number if number == "double" else kind, self._issued(measured.WARPS[-1], kind=kind, number=number)
        for warps in measured.WARPS:
            yield f"multiply-add, {warps} warps of {measured.CHAINS}", self._issued(warps)
            yield f"multiply-add, {warps} warps of {measured.CHAINS}, meeting", self._issued(warps, meets=True)

    def _issued(self, warps: int, **options: Any) -> float:
        blocks = self._device.limits.multiprocessors
        program = issue_probe(threads=32 * warps, chains=measured.CHAINS, length=_LENGTH // measured.CHAINS, **options)
        executable, launch = self._ready(program, STAGES)
        factor = (np.float64 if options.get("number") == "double" else np.float32)(0.5)
        run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, factor, np.int32(_STAGES)))
        per_s = self._rate(run, float(blocks * warps * _LENGTH * _STAGES)).bytes_per_s
        return per_s * (2 if options.get("kind") in ("conversion", "shared memory") else 1)  # there and back

    def stages(self) -> Iterator[tuple[str, float]]:
        """Seconds of a stage after which the warps of a block exchange words, one block on each multiprocessor."""
        blocks, nothing = self._device.limits.multiprocessors, self._device.empty(1, "int32")
        nothing.fill(0)
        known = [one for one in MEETINGS if one != "neighbours" or self._device.limits.asynchronous]
        for meeting, warps in product(known, measured.EXCHANGE_WARPS):
            executable, launch = self._ready(exchange_probe(meeting=meeting, threads=_WARP * warps), EXCHANGED)
            numbers = np.float32(0.5), np.int32(_STAGES), np.int32(_EXCHANGE_LENGTH)
            run = partial(executable.launch, launch, (blocks, 1, 1), (self._target, nothing, *numbers))
            yield f"{meeting} by {warps}", 1 / self._rate(run, float(_STAGES)).bytes_per_s

    def latency_s(self, chased_bytes: int) -> float:
        """Of a load that waits for the one before, from where so many bytes have room."""
        xp = self._device.xp
        line = _LINE_BYTES // WORD_BYTES
        places = xp.arange(chased_bytes // WORD_BYTES, dtype=xp.uint32)
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

    def again(self, between_bytes: int) -> float:
        """Bytes per second, read first and left, of tiles that are read again after so many of them."""
        executable, launch = self._loaded(AGAIN, access_bytes=_AGAIN_ACCESS, threads=_AGAIN_BLOCK)
        tile_bytes = AGAIN_EACH * _AGAIN_ACCESS * _AGAIN_BLOCK
        tiles = STREAMS * _STREAM_BYTES // tile_bytes
        numbers = np.int32(tiles), np.int32(between_bytes // (2 * tile_bytes) % tiles)
        run = partial(executable.launch, launch, (tiles, 1, 1), (self._source, self._target, *numbers))
        self._target.fill(0)
        found = self._rate(run, 2.0 * tiles * tile_bytes)
        at = np.arange(0, tiles * tile_bytes // WORD_BYTES, _STRIDE)
        if not bool((self._target[at] == self._source[at]).all()):
            raise RuntimeError(_NOT_MOVED)
        return found.bytes_per_s

    def holes(self, holes: int, in_place: bool) -> float:
        """Bytes per second of a copy of words that leaves out one of so many sectors in 64, which is counted."""
        accesses = _STREAM_BYTES // WORD_BYTES
        executable, launch = self._loaded(HOLES, threads=_HOLES_BLOCK)
        arrays = self._source, self._source if in_place else self._target
        numbers = np.int32(accesses), np.int32(holes)
        run = partial(executable.launch, launch, (ceil(accesses / _HOLES_BLOCK), 1, 1), (*arrays, *numbers))
        self._target.fill(0)
        found = self._rate(run, 2.0 * STREAMS * _STREAM_BYTES)
        lacking = float((self._target[:_LOOKED_AT] != self._source[:_LOOKED_AT]).mean())
        if not in_place and abs(lacking - holes / 64 * WORD_BYTES / SECTOR_BYTES) > _NEARLY:
            raise RuntimeError(_NOT_MOVED)
        return found.bytes_per_s

    def pieces(self, pieces: int, later: int) -> float:
        """Bytes per second of a copy of words that stores so many sectors in 64 in pieces, so many accesses apart."""
        accesses = _STREAM_BYTES // WORD_BYTES // (2 * later) * 2 * later
        executable, launch = self._loaded(PIECES, threads=_HOLES_BLOCK)
        numbers = map(np.int32, (accesses, pieces, later))
        grid = (ceil(accesses / _HOLES_BLOCK), 1, 1)
        run = partial(executable.launch, launch, grid, (self._source, self._target, *numbers))
        self._target.fill(0)
        found = self._rate(run, 2.0 * STREAMS * WORD_BYTES * accesses)
        at = np.arange(min(_LOOKED_AT, accesses))
        stayed, swapped = (self._target[at] == self._source[from_] for from_ in (at, at ^ later))
        share = pieces / 64 * WORD_BYTES / SECTOR_BYTES
        if not bool((stayed | swapped).all()) or abs(float((~stayed).mean()) - share) > _NEARLY:
            raise RuntimeError(_NOT_MOVED)
        return found.bytes_per_s

    def small(self) -> Iterator[tuple[str, float]]:
        """Seconds of a launch that copies little, launch after launch, there and back."""
        for edge in measured.SMALL_EDGES:
            for name in measured.LAUNCHED:
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
        grid = (ceil(accesses / _SMALL_BLOCK), 1, 1)
        return partial(executable.launch, launch, grid, (*sides, np.int32(accesses)))

    def _rate(self, run: Callable[[], None], moved: float) -> Rate:
        return rate(self._device, run, moved, _SAMPLES, _WARMUP_S, _SAMPLE_S)

    def _shortest_s(self, run: Callable[[], None]) -> float:
        return min(self._device.time_s(run) for _ in range(5))

    def _loaded(self, entry: str, *, streams: int = STREAMS, **options: Any) -> tuple[Executable, Launch]:
        return self._ready(probe(streams=streams, **options), entry)

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

    def _check(
        self, width: int, run_bytes: int, accesses: int, load: Array | None = None, store: Array | None = None
    ) -> None:
        """Whether target and source agree at some places, each stream being rotated by what its sides are displaced."""
        xp = self._device.xp
        none = np.zeros((STREAMS, 1), int)
        at = np.arange(0, accesses, _STRIDE)
        there, here = (
            xp.asarray(_places((at + by) % accesses, accesses, run_bytes // width))
            for by in (none if load is None else load, none if store is None else store)
        )
        source, target = (array.view("uint16").reshape(-1, width // 2) for array in (self._source, self._target))
        if not bool((target[here] == source[there]).all()):
            raise RuntimeError(_NOT_MOVED)


def _walked(accesses: int) -> tuple[int, int]:
    """As many of them, or fewer, that threads can take one after another, and how many lie from one to the next."""
    apart = min(_FAR, accesses // _WALK // _GRANULE * _GRANULE)
    return accesses // (_WALK * apart) * (_WALK * apart), apart


def _amounts(streams: int, near: int, far: int) -> Array:
    """Accesses by which each of the streams is displaced, (streams, 1): as the kernel has it."""
    q = np.arange(streams)[:, None]
    return near * (q % 3 - 1) + far * (q // 3 % 3 - 1)


def _places(at: Array, accesses: int, run: int) -> Array:
    """Where accesses of all streams, (streams, n), lie: as many together as a run has, 0: all of them."""
    streams = len(at)
    stream = np.arange(streams)[:, None]
    length = run or accesses
    return ((at // length) * streams + stream) * length + at % length


def _alternate(there: Callable[[], None], back: Callable[[], None], times: int) -> None:
    for _ in range(times):
        there()
        back()
