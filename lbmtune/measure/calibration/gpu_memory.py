"""What a GPU moves per second where accesses are not those of aligned streams, or find less in caches.

What every copy to another array has moved is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import groupby, product
from math import ceil, prod

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.limits import WARP
from lbmtune.codegen.probes import (
    AGAIN,
    AGAIN_EACH,
    DISPLACED,
    HOLES,
    LISTED,
    PARTS,
    PIECES,
    RUNS,
    SHUFFLED,
    SPILL,
    SPILLED,
    STRUCTURES,
    WORD_BYTES,
    probe,
    shuffled_probe,
    spilled_probe,
    structures_probe,
)
from lbmtune.codegen.streams import STREAMS
from lbmtune.measure.calibration.bench import CHECKED_EVERY, Bench, Figures, Kernel, Part, insist, shared_bytes
from lbmtune.model.gpu.occupancy import resident_threads
from lbmtune.model.machine import benchmark_names as measured
from lbmtune.model.machine.benchmark_names import (
    BLOCK,
    STRUCTURE_FAR,
    WALKING,
    WIDTHS,
    Displaced,
    Parts,
    Planes,
    Shuffled,
    Structures,
)
from lbmtune.model.machine.description import ACCESS_BYTES

L1_BYTES = 256 << 10
"""Of a multiprocessor since compute capability 8.0 of data centre cards, shared memory included."""
_GRANULE = 256
"""What numbers of accesses are multiples of."""
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
_RUNS_BLOCK, _AGAIN_BLOCK, _HOLES_BLOCK, _SPILLED_BLOCK = 128, 128, 128, 128
_AGAIN_ACCESS = 16
_LOOKED_AT, _NEARLY = 1 << 20, 2e-3
"""Words of a copy with holes, and how near the share of those that are missing has to be to what was asked for."""
_SPILLED_ROOM, _ALIGNED = 4096, 16
"""Bytes of local memory that a thread has room for, and takes at once."""
_STRUCTURES_SHARE = 4
"""One of so many parts of an array is copied: far more than a cache keeps, and no slow copy takes long."""
_SPILLED_KIB = (0, 24, 48, 96, 144, 216, 312, 504, 1008)
"""Of local memory that all threads of a multiprocessor keep."""


def runs(_: Limits) -> Iterator[Part]:
    """Streams that lie in runs."""
    for name in measured.RUNS:
        access, run = name.partition(" of ")[::2]
        width, run_bytes = int(access), int(run or 0)
        program = probe(access_bytes=width, run_bytes=run_bytes, threads=_RUNS_BLOCK)
        yield Part("runs_bytes_per_s", program, RUNS, partial(_copied, name, width, run_bytes))


def fewer_threads(limits: Limits) -> Iterator[Part]:
    """Streams that lie apart, by few threads of a multiprocessor."""
    for width, counts in measured.THREADS.items():
        for count in counts:
            program = probe(access_bytes=width, threads=BLOCK, shared_bytes=shared_bytes(limits, count, BLOCK))
            yield Part("threads_bytes_per_s", program, RUNS, partial(_copied, f"{width} by {count}", width, 0))


def _copied(name: str, width: int, run_bytes: int, bench: Bench, kernel: Kernel) -> Figures:
    accesses = bench.stream_bytes // width
    run = kernel.by(ceil(accesses / kernel.launch.block[0]), bench.source, bench.target, np.int32(accesses))
    found = bench.copied_per_s(run, 2.0 * STREAMS * bench.stream_bytes)
    bench.check(width, run_bytes, accesses)
    yield name, found


def displaced(_: Limits) -> Iterator[Part]:
    """Copies whose sides are displaced."""
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


def _displaced(one: Displaced, bench: Bench, kernel: Kernel) -> Figures:
    steps = _WALK if one.walking else 1
    accesses, apart = _walked(STREAMS * bench.stream_bytes // (one.streams * one.access_bytes))
    yield one.name, _displaced_per_s(one, bench, kernel, accesses, apart, steps)


def _displaced_per_s(one: Displaced, bench: Bench, kernel: Kernel, accesses: int, apart: int, steps: int) -> float:
    """apart: accesses of a row, and from one to the next one that a thread takes."""
    load, load_far, store, store_far = _SIDES[one.side]
    load_far, store_far = (far * apart for far in (load_far, store_far))
    numbers = map(np.int32, (accesses, load, load_far, store, store_far, apart, steps))
    to = bench.source if one.side in _IN_PLACE else bench.target
    run = kernel.by(accesses // steps // kernel.launch.block[0], bench.source, to, *numbers)
    found = bench.copied_per_s(run, 2.0 * one.streams * one.access_bytes * accesses)
    if one.side not in _IN_PLACE:
        by = (load, load_far), (store, store_far)
        bench.check(one.access_bytes, one.run_bytes, accesses, *(_amounts(one.streams, *side) for side in by))
    return found


def shuffled(_: Limits) -> Iterator[Part]:
    """Displaced copies by vectors of elements, in runs of a warp or not."""
    for one in measured.shuffled():
        element, access, run = one.element_bytes, one.access_bytes, one.run_bytes
        program = shuffled_probe(element_bytes=element, access_bytes=access, run_bytes=run, threads=one.block)
        yield Part("shuffled_bytes_per_s", program, SHUFFLED, partial(_shuffled, one))


def _shuffled(one: Shuffled, bench: Bench, kernel: Kernel) -> Figures:
    element, access, steps = one.element_bytes, one.access_bytes, _WALK if one.walking else 1
    accesses, apart = _walked(bench.stream_bytes // access)
    row = apart * access // element
    load, load_far, store, store_far = _SIDES[one.side]
    numbers = map(np.int32, (accesses, load, load_far * apart, store, store_far * apart, apart, steps))
    to = bench.source if one.side in _IN_PLACE else bench.target
    run = kernel.by(accesses // steps // one.block, bench.source, to, *numbers)
    found = bench.copied_per_s(run, 2.0 * STREAMS * access * accesses)
    if one.side not in _IN_PLACE:
        by = (_amounts(STREAMS, near, far * row) for near, far in ((load, load_far), (store, store_far)))
        bench.check(element, one.run_bytes, accesses * access // element, *by)
    yield one.name, found


def spilled(_: Limits) -> Iterator[Part]:
    """Copies whose threads keep words in local memory, which are not counted."""
    for access in (*WIDTHS, ACCESS_BYTES):
        program = spilled_probe(access_bytes=access, local_bytes=_SPILLED_ROOM, threads=_SPILLED_BLOCK)
        yield Part("spilled_bytes_per_s", program, SPILLED, partial(_spilled, access))


def _spilled(access: int, bench: Bench, kernel: Kernel) -> Figures:
    threads = resident_threads(prod(kernel.launch.block), kernel.executable.resources, L1_BYTES)
    accesses, apart = _walked(bench.stream_bytes // access)
    for kept, walking in product(_SPILLED_KIB, (False, True)):
        local, steps = kept * 1024 // threads // _ALIGNED * _ALIGNED, _WALK if walking else 1
        numbers = map(np.int32, (accesses, local // WORD_BYTES, apart, steps))
        run = kernel.by(accesses // steps // _SPILLED_BLOCK, bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * access * accesses)
        bench.check(access, 0, accesses)
        yield f"{access} by {threads} of {local}{WALKING * walking}", found


def listed(_: Limits) -> Iterator[Part]:
    """Copies that find their place in a list, which is counted."""
    for access in WIDTHS:
        program = probe(access_bytes=access, threads=BLOCK)
        yield Part("listed_bytes_per_s", program, LISTED, partial(_listed, access))


def _listed(access: int, bench: Bench, kernel: Kernel) -> Figures:
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


def local(limits: Limits) -> Iterator[Part]:
    """Local memory, written and read."""
    for name, (threads, local_bytes) in _LOCAL.items():
        asked = shared_bytes(limits, threads, _LOCAL_BLOCK) if local_bytes * threads > L1_BYTES else 0
        program = probe(local_bytes=local_bytes, threads=_LOCAL_BLOCK, shared_bytes=asked)
        yield Part("local_bytes_per_s", program, SPILL, partial(_local, name, threads, local_bytes))


def _local(name: str, threads: int, local_bytes: int, bench: Bench, kernel: Kernel) -> Figures:
    blocks = bench.device.limits.multiprocessors * threads // _LOCAL_BLOCK
    run = kernel.by(blocks, bench.target, np.int32(_LOCAL_TURNS))
    yield name, bench.per_s(run, 2.0 * blocks * _LOCAL_BLOCK * local_bytes * _LOCAL_TURNS)


def again(_: Limits) -> Iterator[Part]:
    """Tiles that are read again after so many bytes, read first and left."""
    program = probe(access_bytes=_AGAIN_ACCESS, threads=_AGAIN_BLOCK)
    yield Part("again_bytes_per_s", program, AGAIN, _again)


def _again(bench: Bench, kernel: Kernel) -> Figures:
    tile_bytes = AGAIN_EACH * _AGAIN_ACCESS * _AGAIN_BLOCK
    tiles = STREAMS * bench.stream_bytes // tile_bytes
    at = np.arange(0, tiles * tile_bytes // WORD_BYTES, CHECKED_EVERY)
    for mib in measured.AGAIN_MIB:
        numbers = np.int32(tiles), np.int32((mib << 20) // (2 * tile_bytes) % tiles)
        run = kernel.by(tiles, bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * tiles * tile_bytes)
        insist(bool((bench.target[at] == bench.source[at]).all()))
        yield str(mib << 20), found


def holes(_: Limits) -> Iterator[Part]:
    """Copies of words that leave out one of so many sectors in 64, which is counted."""
    yield Part("holes_bytes_per_s", probe(threads=_HOLES_BLOCK), HOLES, _holes)


def _holes(bench: Bench, kernel: Kernel) -> Figures:
    accesses = bench.stream_bytes // WORD_BYTES
    for (where, to), left_out in product((("apart", bench.target), ("in place", bench.source)), measured.HOLES):
        numbers = np.int32(accesses), np.int32(left_out)
        run = kernel.by(ceil(accesses / _HOLES_BLOCK), bench.source, to, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * bench.stream_bytes)
        lacking = float((bench.target[:_LOOKED_AT] != bench.source[:_LOOKED_AT]).mean())
        insist(to is bench.source or abs(lacking - left_out / 64 * WORD_BYTES / SECTOR_BYTES) <= _NEARLY)
        yield f"{where} {left_out}", found


def pieces(_: Limits) -> Iterator[Part]:
    """Copies of words that store so many sectors in 64 in pieces, so many accesses apart."""
    yield Part("pieces_bytes_per_s", probe(threads=_HOLES_BLOCK), PIECES, _pieces)


def _pieces(bench: Bench, kernel: Kernel) -> Figures:
    for later, count in product(measured.LATER, measured.PIECES):
        accesses = bench.stream_bytes // WORD_BYTES // (2 * later) * 2 * later
        numbers = map(np.int32, (accesses, count, later))
        run = kernel.by(ceil(accesses / _HOLES_BLOCK), bench.source, bench.target, *numbers)
        found = bench.copied_per_s(run, 2.0 * STREAMS * WORD_BYTES * accesses)
        at = np.arange(min(_LOOKED_AT, accesses))
        stayed, swapped = (bench.target[at] == bench.source[from_] for from_ in (at, at ^ later))
        share = count / 64 * WORD_BYTES / SECTOR_BYTES
        insist(bool((stayed | swapped).all()) and abs(float((~stayed).mean()) - share) <= _NEARLY)
        yield f"{2 * STREAMS * WORD_BYTES * later} {count}", found


def structures(_: Limits) -> Iterator[Part]:
    """Copies of arrays of structures by few threads that keep words in local memory, which are not counted."""
    for (width, elements), each in groupby(measured.structures(), lambda one: (one.element_bytes, one.elements)):
        program = structures_probe(streams=elements, access_bytes=width, local_bytes=_SPILLED_ROOM, threads=BLOCK)
        yield Part("structures_bytes_per_s", program, STRUCTURES, partial(_structures, tuple(each)))


def _structures(copies: tuple[Structures, ...], bench: Bench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        room = STREAMS * bench.stream_bytes // _STRUCTURES_SHARE // (elements * width) // _GRANULE * _GRANULE
        far, apart = (min(room, n) for n in (STRUCTURE_FAR, bench.device.limits.multiprocessors * one.threads))
        steps = room // apart
        load, load_far, store, store_far = _SIDES[one.side]
        load_far, store_far = load_far * far, store_far * far
        words = one.local_bytes // WORD_BYTES
        numbers = map(np.int32, (apart * steps, load, load_far, store, store_far, words, apart, steps))
        to = bench.source if one.side in _IN_PLACE else bench.target
        run = kernel.by(ceil(apart / BLOCK), bench.source, to, *numbers)
        found = bench.copied_per_s(run, 2.0 * elements * width * apart * steps)
        if one.side not in _IN_PLACE:
            by = (load, load_far), (store, store_far)
            bench.check(width, width, apart * steps, *(_amounts(elements, *side) for side in by))
        yield one.name, found


def planes(_: Limits) -> Iterator[Part]:
    """Copies of arrays of structures by rows of so many."""
    for (width, elements), each in groupby(measured.planes(), lambda one: (one.element_bytes, one.elements)):
        program = probe(streams=elements, access_bytes=width, run_bytes=width, threads=BLOCK)
        yield Part("planes_bytes_per_s", program, DISPLACED, partial(_planes, tuple(each)))


def _planes(copies: tuple[Planes, ...], bench: Bench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        room = STREAMS * bench.stream_bytes // (elements * width)
        apart = min(one.apart, room // _WALK // _GRANULE * _GRANULE)
        copy = Displaced(width, width, one.side, BLOCK, streams=elements)
        yield one.name, _displaced_per_s(copy, bench, kernel, room // (_WALK * apart) * _WALK * apart, apart, 1)


def parts(_: Limits) -> Iterator[Part]:
    """Copies of some elements of each structure, which are all that is counted."""
    for (width, elements), each in groupby(measured.parts(), lambda one: (one.element_bytes, one.elements)):
        program = structures_probe(streams=elements, access_bytes=width, local_bytes=_SPILLED_ROOM, threads=BLOCK)
        yield Part("parts_bytes_per_s", program, PARTS, partial(_parts, tuple(each)))


def _parts(copies: tuple[Parts, ...], bench: Bench, kernel: Kernel) -> Figures:
    for one in copies:
        width, elements = one.element_bytes, one.elements
        accesses = STREAMS * bench.stream_bytes // (elements * width) // _GRANULE * _GRANULE
        run = kernel.by(accesses // BLOCK, bench.source, bench.target, np.int32(accesses), np.uint32(one.mask))
        found = bench.copied_per_s(run, 2.0 * one.copied * width * accesses)
        looked_at = min(accesses, _LOOKED_AT // elements) * elements * width // 2
        source, target = (
            array.view("uint16")[:looked_at].reshape(-1, elements, width // 2) for array in (bench.source, bench.target)
        )
        moved = bench.device.xp.asarray([bool(one.mask >> q & 1) for q in range(elements)])
        insist(bool((target[:, moved] == source[:, moved]).all()) and not bool(target[:, ~moved].any()))
        yield one.name, found


def _walked(accesses: int) -> tuple[int, int]:
    """As many of them, or fewer, that threads can take one after another, and how many lie from one to the next."""
    apart = min(_FAR, accesses // _WALK // _GRANULE * _GRANULE)
    return accesses // (_WALK * apart) * (_WALK * apart), apart


def _amounts(streams: int, near: int, far: int) -> Array:
    """Accesses by which each of the streams is displaced, (streams, 1): as the kernel has it."""
    q = np.arange(streams)[:, None]
    return near * (q % 3 - 1) + far * (q // 3 % 3 - 1)
