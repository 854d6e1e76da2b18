"""Names of the figures of micro-benchmarks, by what they vary: calibration stores by them and the model looks them up.

`model.machine.description` describes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

from lbmtune.catalogue.limits import WARP
from lbmtune.codegen.streams import STREAMS
from lbmtune.model.machine.description import ACCESS_BYTES, WORD_BYTES, Calibration, CpuCalibration
from lbmtune.model.machine.memory_walks import Walk, calibrated

BLOCK = 64
"""Threads of a block, if a name does not have them."""
WIDTHS = (2, 4, 8)
"""Bytes of a stored value."""
RUNS = (
    *("2", "4", "8", "16", "2 of 32", "4 of 64", "2 of 64", "2 of 128", "2 of 256"),
    *(f"{access} of {run}" for access in (4, 8, 16) for run in (128, 256, 512, 1024)),
)
THREADS = {
    2: (256, 512, 768, 1024, 1536),
    4: (128, 256, 384, 512, 768, 1024, 1536),
    8: (128, 256, 384, 512, 768, 1024),
    16: (64, 128, 192, 256, 384, 512),
}
"""Threads of a multiprocessor, by bytes of an access."""
SIDES = ("none", "stay", "rows", "loads", "stores", "in place")
_STRUCTURE_SIDES = ("none", "loads", "stores", "in place")
DISPLACED_BLOCKS, WALKING_BLOCKS = (16, 32, 64, 256), (16, 64)
"""Threads of a block side by side, and the same of walking threads."""
WALKING = " walking"
CELLS = (9, 19, 27)
"""Streams whose single elements lie together."""
SHUFFLED = ((2, 4), (2, 8), (2, 16), (4, 8), (4, 16), (8, 16))
"""Bytes of an element, and of a vector of them."""
SHUFFLED_BLOCKS, SHUFFLED_SIDES = (64, 256), ("none", "rows", "loads", "stores", "in place")
LISTED_SIDES = ("loads", "stores", "in place")
LOCAL = ("L1", "L2", "memory")
KINDS = ("double", "conversion", "shuffle", "shared memory")
"""Kinds of instructions, besides those measured by the number of warps."""
WARPS, CHAINS = (4, 8, 12, 16, 24, 32), 8
"""Warps of a multiprocessor, and independent instructions of each."""
BARRIERS, EXCHANGE_WARPS = ("none", "block", "neighbours"), (8, 12, 16)
"""Synchronisation of warps that exchange words, and warps of a block."""
OVERTAKING, OVERTAKEN_WARPS = ("used", "overtaken"), (8, 16, 32)
"""Cases by whether a word is stored after its load has returned, or before that; warps of a multiprocessor."""
LAUNCHED, SMALL_EDGES = ("call", "graph", "dependent"), (32, 48, 64, 96, 128)
"""Ways of launching, and edges of small cubes of words."""
AGAIN_MIB = (2, 4, 8, 16, 24, 32, 40, 48, 64, 200)
"""MiB that are read before a tile is read again."""
HOLES, PIECES = (0, 2, 4, 8, 16, 24, 32, 48, 64), (0, 4, 8, 16, 24, 32, 48, 64)
"""Sectors in 64 that lack an element; sectors in 64 that are stored in two pieces."""
STRUCTURE_WIDTHS, STRUCTURE_CELLS = (4, 8), (19, 27)
STRUCTURE_SIDES = ("stay", "loads", "stores", "in place")
STRUCTURE_THREADS, STRUCTURE_KIB = 512, (0, 64, 160, 480)
"""Threads of a multiprocessor, and KiB of local memory of all of them."""
STRUCTURE_FAR = 1 << 16
"""Distance in structures of a displacement by rows."""
PLANE_DISTANCES = (1 << 14, 1 << 15, 1 << 16, 1 << 17)
"""Distances of copies that vary them, in structures."""
COPIED = (1, 2, 3, 4, 5, 9)
"""Copied elements of a structure."""
LATER = (1 << 8, 1 << 11, 1 << 13, 1 << 15, 1 << 17)
"""Accesses between two pieces of a sector."""
SCALED_WORDS = {
    "again_bytes_per_s": 0,
    "pieces_bytes_per_s": 0,
    "planes_bytes_per_s": 0,
    "threads_bytes_per_s": 2,
    "structures_bytes_per_s": 6,
}
"""Word of a name, by table, that is a number of the device: another where the calibration of another is scaled."""


class Displaced(NamedTuple):
    """A displaced copy. block: threads side by side; walking: each thread takes accesses one after another.

    elements: of an access, whose vectors lanes shuffle.
    """

    access_bytes: int
    run_bytes: int
    side: str
    block: int
    walking: bool = False
    streams: int = STREAMS
    elements: int = 1

    @property
    def element_bytes(self) -> int:
        """Return the bytes of an element."""
        return self.access_bytes // self.elements

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        vector = f" x {self.elements}" if self.elements > 1 else ""
        run = f" of {self.run_bytes}" if self.run_bytes else ""
        streams = f" x {self.streams}" if self.run_bytes == self.access_bytes else ""
        return f"{self.element_bytes}{vector}{run}{streams} {self.side} by {self.block}{WALKING * self.walking}"


def displaced() -> Iterator[Displaced]:
    """Yield copies of streams that lie apart, of streams with runs of a warp, and of arrays of structures."""
    for width, side in product(WIDTHS, SIDES):
        for run in (0, WARP * width):
            yield from (Displaced(width, run, side, block) for block in DISPLACED_BLOCKS)
            yield from (Displaced(width, run, side, block, walking=True) for block in WALKING_BLOCKS)
        if side in _STRUCTURE_SIDES:
            for streams, walking in product(CELLS, (False, True)):
                yield Displaced(width, width, side, BLOCK, walking, streams)


def shuffled() -> Iterator[Displaced]:
    """Yield displaced copies by vectors, in runs of a warp or not, grouped by kernel."""
    for (element, access), in_runs, walking in product(SHUFFLED, (False, True), (False, True)):
        for block, side in product((BLOCK,) if walking else SHUFFLED_BLOCKS, SHUFFLED_SIDES):
            yield Displaced(access, WARP * access * in_runs, side, block, walking, elements=access // element)


def listed_name(access_bytes: int, side: str, *, is_displaced: bool = False, ahead: bool = False) -> str:
    """Return the name of a copy whose loads, stores, or both in place go by a list."""
    return f"{access_bytes} {side}{' displaced' * is_displaced}{' ahead' * ahead}"


def overtaken_name(how: str, warps: int) -> str:
    """Return the name of the time of a stored word. how: of `OVERTAKING`."""
    return f"{how} by {warps}"


class Structures(NamedTuple):
    """A copy of arrays of structures. threads: of a multiprocessor; local_bytes: of a thread."""

    element_bytes: int
    elements: int
    threads: int
    local_bytes: int
    side: str

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return f"{self.element_bytes} x {self.elements} by {self.threads} of {self.local_bytes} {self.side}"

    @classmethod
    def named(cls, name: str) -> Structures:
        """Return the copy of a name."""
        width, _, elements, _, threads, _, local, *side = name.split()
        return cls(int(width), int(elements), int(threads), int(local), " ".join(side))


STRUCTURES = tuple(
    Structures(width, elements, STRUCTURE_THREADS, (kib << 10) // STRUCTURE_THREADS, side)
    for width, elements, kib, side in product(STRUCTURE_WIDTHS, STRUCTURE_CELLS, STRUCTURE_KIB, STRUCTURE_SIDES)
)


class Planes(NamedTuple):
    """A copy of arrays of structures. apart: displacement in structures, of a third of the elements each way."""

    element_bytes: int
    elements: int
    apart: int
    side: str

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return f"{self.apart} {self.element_bytes} x {self.elements} {self.side}"


PLANES = tuple(Planes(*each) for each in product(STRUCTURE_WIDTHS, STRUCTURE_CELLS, PLANE_DISTANCES, LISTED_SIDES))


class Parts(NamedTuple):
    """A copy of some elements of each structure."""

    element_bytes: int
    elements: int
    copied: int

    @property
    def name(self) -> str:
        """Return the name in the file of a machine."""
        return f"{self.element_bytes} x {self.elements} {self.copied}"

    @property
    def mask(self) -> int:
        """Return the bits of the copied elements, spread evenly."""
        return sum(1 << self.elements * (2 * n + 1) // (2 * self.copied) for n in range(self.copied))


PARTS = tuple(Parts(*each) for each in product(WIDTHS, STRUCTURE_CELLS, COPIED))


def names(*, neighbours: bool = True) -> dict[str, list[str]]:
    """Return the names of the figures of a calibrated GPU, by table of `Calibration`.

    Without those of `spilled`, whose threads depend on the compiled copies. neighbours: warps can wait for their
    neighbours, which requires compute capability 8.0.
    """
    operands = product(WIDTHS, LISTED_SIDES)
    asked: tuple[dict[str, bool], ...] = ({"is_displaced": True}, {"ahead": True}, {})
    issued = (f"multiply-add, {warps} warps of {CHAINS}{meeting}" for warps in WARPS for meeting in ("", ", meeting"))
    sizes = [2 * STREAMS * WORD_BYTES * edge**3 for edge in SMALL_EDGES]
    return {
        "runs_bytes_per_s": [*RUNS],
        "threads_bytes_per_s": [f"{access} by {count}" for access, counts in THREADS.items() for count in counts],
        "displaced_bytes_per_s": [one.name for one in displaced()],
        "shuffled_bytes_per_s": [one.name for one in shuffled()],
        "listed_bytes_per_s": [listed_name(width, side, **how) for width, side in operands for how in asked],
        "local_bytes_per_s": [*LOCAL],
        "instructions_per_s": [*KINDS, *issued],
        "small_s": [f"{way} {size}" for size in sizes for way in LAUNCHED],
        "again_bytes_per_s": [str(mib << 20) for mib in AGAIN_MIB],
        "holes_bytes_per_s": [f"{where} {holes}" for where in ("apart", "in place") for holes in HOLES],
        "pieces_bytes_per_s": [f"{2 * STREAMS * WORD_BYTES * later} {n}" for later in LATER for n in PIECES],
        "structures_bytes_per_s": [one.name for one in STRUCTURES],
        "planes_bytes_per_s": [one.name for one in PLANES],
        "parts_bytes_per_s": [one.name for one in PARTS],
        "overtaken_s": [overtaken_name(how, warps) for how in OVERTAKING for warps in OVERTAKEN_WARPS],
        "stages_s": [f"{barrier} by {warps}" for barrier in BARRIERS[: 2 + neighbours] for warps in EXCHANGE_WARPS],
    }


def lacking(found: Calibration, *, scaled: bool = False) -> Iterator[str]:
    """Yield the figures that the calibration of a GPU lacks, as clauses. scaled: it is that of another GPU, scaled.

    A table that may be empty and is empty was not measured; the model does without.
    """
    neighbours = any(name.startswith(BARRIERS[-1]) for name in found.stages_s)
    for table, wanted in names(neighbours=neighbours).items():
        kind = partial(_without, word=SCALED_WORDS.get(table) if scaled else None)
        known = {kind(name) for name in getattr(found, table)}
        yield from (f"{table} lacks {name!r}" for name in wanted if known and kind(name) not in known)
    for access, walking in product((*WIDTHS, ACCESS_BYTES), ("", WALKING)):
        for local, said in (("0", "0"), ("[1-9][0-9]*", "N")):
            pattern = re.compile(f"{access} by [1-9][0-9]* of {local}{walking}")
            if not any(map(pattern.fullmatch, found.spilled_bytes_per_s)):
                yield f"spilled_bytes_per_s lacks '{access} by M of {said}{walking}'"


def _without(name: str, word: int | None) -> str:
    """Return a name without one of its words."""
    return " ".join(one for place, one in enumerate(name.split()) if place != word)


def lacking_of_cpu(found: CpuCalibration) -> Iterator[str]:
    """Yield the figures that the calibration of a CPU lacks: each measured width has all walks and operations."""
    widths = tuple(int(width) for width in found.multiply_add_per_s)
    walks = list(calibrated(widths))
    wanted: dict[str, list[str]] = {
        "walks_bytes_per_s": [one.name for one in walks],
        "thread_walks_bytes_per_s": [one.name for one in walks if one == Walk(one.kind, one.access_bytes)],
        "cached_bytes_per_s": [*found.multiply_add_per_s],
        "divide_per_s": [*found.multiply_add_per_s],
    }
    for table, each in wanted.items():
        yield from (f"{table} lacks {name!r}" for name in each if name not in getattr(found, table))
