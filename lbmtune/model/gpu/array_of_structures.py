"""Arrays of structures: how fast copies of them are that move what a scheme moves, and how that depends on the cache.

Each sector holds values of several directions, which cells of several planes access. In place it is loaded, and stored
in pieces by threads of these planes, and the L2 cache puts them together as long as it has it. How long that is follows
from what goes through it meanwhile: one plane, and the words that threads keep in local memory; or, where threads walk
from plane to plane, what all of them touch. Words that are kept from the loads to the stores delay these besides.
Copies that do so are measured (`Calibration.displaced_bytes_per_s`, `planes_bytes_per_s`, `structures_bytes_per_s`).
A ring of ghost cells has a few elements of each structure, and the rest of its sectors comes along: that is what copies
of parts take (`Calibration.parts_bytes_per_s`).
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.catalogue.storage import frame
from lbmtune.lattice import lattice
from lbmtune.model.gpu.inputs import WALKERS, Subject, between, side_of, walking_name
from lbmtune.model.gpu.local_memory import local_byte_s
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.figures import nearest, numbered
from lbmtune.records import Entry

_STAY = "none"
"""The side of a copy of which nothing is displaced."""
_COPYING = {(4, 19): 1280, (4, 27): 1152, (8, 19): 1024, (8, 27): 768}
"""Threads of a multiprocessor that have room for displaced copies of structures, by bytes of an element and elements:
of 48, 56, 64 and 80 registers each, as compiled for compute capability 9.0."""


def of_structures(subject: Subject) -> float:
    """Bytes per second: each access of a warp touches all lines of its cells, as many as a cell has elements."""
    config, stencil = subject.config, subject.case.stencil
    if config.by_faces:
        return undisplaced(subject)
    if has_parts(subject):
        own_s = 2 * stencil.q * config.stored.bytes / undisplaced(subject)
        return traffic(subject.case, config).populations / (own_s + ring_s(subject))
    elements = _elements(subject)
    passes = [one for parity in range(config.propagation.period) for one in config.propagation.passes(stencil, parity)]
    told = subject.entries or [subject.resources] * len(passes)
    moved = [len(phase.accesses) for phase in passes]
    byte_s = (_byte_s(subject, elements, phase, entry) for phase, entry in zip(passes, told, strict=True))
    return sum(moved) / sum(count * seconds for count, seconds in zip(moved, byte_s, strict=True))


def undisplaced(subject: Subject) -> float:
    """The same of a copy whose elements all stay in their own structure."""
    return subject.calibration.displaced_bytes_per_s[f"{_copies(subject)}{_elements(subject)} {_STAY} by {WALKERS}"]


def _copies(subject: Subject) -> str:
    """How the names of copies by accesses as wide as its elements begin."""
    return f"{subject.config.stored.bytes} of {subject.config.stored.bytes} x "


def _elements(subject: Subject) -> int:
    """Of the structures that were copied, of which most are like its own."""
    name, rates = _copies(subject), subject.calibration.displaced_bytes_per_s
    known = {int(one.split()[4]) for one in rates if one.startswith(name)}
    return nearest(known, subject.config.kept.values(subject.case.stencil))


def _byte_s(subject: Subject, elements: int, phase: Phase, entry: Entry) -> float:
    """Seconds per byte of a pass. elements: of the structures that were copied."""
    config, side = subject.config, side_of(phase)
    threads = subject.threads_of(entry.registers)
    kept_bytes = threads * entry.local_bytes
    name = f"{_copies(subject)}{elements} {side} by {WALKERS}{walking_name(config)}"
    as_many_s = 1 / subject.calibration.displaced_bytes_per_s[name]
    if side == _STAY or config.indirect:
        copied_s = as_many_s
    elif config.march > 1:
        copied_s = _walked_s(subject, elements, side, threads, as_many_s)
    else:
        copied_s = _by_planes_s(subject, elements, phase, kept_bytes, as_many_s)
    return copied_s + longer_s(subject.machine, config.stored.bytes, elements, side, kept_bytes)


def _walked_s(subject: Subject, elements: int, side: str, threads: int, as_many_s: float) -> float:
    """Seconds per byte where threads walk: between copies by few of them, and by as many as have room."""
    copied = (subject.config.stored.bytes, elements)
    few = [(count, seconds) for count, local, seconds in _copied(subject.machine, *copied, side) if not local]
    if not few:
        return as_many_s
    (count, few_s), most = few[0], _COPYING[copied]
    share = min(1.0, max(0.0, (threads - count) / (most - count))) if count < most else 1.0
    return few_s + share * (as_many_s - few_s)


def _by_planes_s(subject: Subject, elements: int, phase: Phase, kept_bytes: float, as_many_s: float) -> float:
    """Seconds per byte where each thread takes one cell.

    Longer than a copy in which nothing is displaced, by how far planes lie apart in what goes through the cache, and by
    the share of the elements that lie in other planes than their cell's. as_many_s: where nobody has measured planes.
    """
    case, config, rates = subject.case, subject.config, subject.calibration
    width, side = config.stored.bytes, side_of(phase)
    known = numbered(tuple(rates.planes_bytes_per_s), "", f" {width} x {elements} {side}")
    if not known:
        return as_many_s
    none_s = 1 / undisplaced(subject)
    curve = [(float(apart), 1 / rates.planes_bytes_per_s[name] - none_s) for apart, name in sorted(known.items())]
    x, y, _ = case.domain
    # in place a structure is in the cache once, to another array twice
    cached_bytes = (1 if side == "in place" else 2) * elements * width
    apart = x * y + kept_bytes * subject.machine.multiprocessors / cached_bytes
    return none_s + between(curve, apart) * _in_other_planes(phase, side) / _displaced(elements)


def _in_other_planes(phase: Phase, side: str) -> float:
    """Share of the accesses of a pass, on the side that is displaced."""
    places = [one.write if side == "stores" else one.read for one in phase.accesses]
    return sum(one.offset[2] != 0 for one in places) / len(places)


def _displaced(elements: int) -> float:
    """The same of a copy: groups of three elements are displaced by a plane back, by none, and by one forward."""
    return sum(n // 3 % 3 != 1 for n in range(elements)) / elements


def has_parts(subject: Subject) -> bool:
    """Whether a kernel keeps rings of ghost cells of structures, and copies of parts of such were measured."""
    config = subject.config
    cut = any(frame(subject.case.stencil, config).blocks or ())
    return cut and 0 < subject.run_bytes < SECTOR_BYTES and bool(subject.calibration.parts_bytes_per_s)


def ring_s(subject: Subject) -> float:
    """Seconds per update of what refreshes rings of ghost cells, each structure of which has a few elements.

    A copy of as many loads the sectors that they come from, completes and stores those that they go to. That the kernel
    that collides loads these again is not added: cells of one plane share what several rings of it are refreshed from.
    Of eleven kernels the one makes up for the other (`docs/design/gpu.md`).
    """
    config, stencil, rates = subject.config, subject.case.stencil, subject.calibration.parts_bytes_per_s
    width = config.stored.bytes
    of_width = {int(name.split()[2]) for name in rates if name.startswith(f"{width} x ")}
    before = f"{width} x {nearest(of_width, stencil.q)} "
    curve = [(float(n), 2 * n * width / rates[name]) for n, name in sorted(numbered(tuple(rates), before).items())]
    return sum(share * between(curve, count) for count, share in _ghosts(stencil.name, config.scheme, config.block))


@lru_cache(maxsize=1024)
def _ghosts(name: str, scheme: str, block: tuple[int, int, int]) -> tuple[tuple[int, float], ...]:
    """Elements of a ghost cell that are read, and how many such cells there are for each cell of a block."""
    import numpy as np

    stencil = lattice(name)
    read = np.zeros([n + 2 for n in block], int)
    for access in SCHEMES[scheme].phase(stencil, 0).accesses:
        x, y, z = access.read.offset
        read[1 + x :, 1 + y :, 1 + z :][: block[0], : block[1], : block[2]] += 1
    read[1:-1, 1:-1, 1:-1] = 0
    found = np.bincount(read.ravel())[1:]
    return tuple((count, float(cells) / prod(block)) for count, cells in enumerate(found, 1) if cells)


def longer_s(machine: Machine, element_bytes: int, elements: int, side: str, kept_bytes: float) -> float:
    """Seconds per byte that is moved, where the threads of a multiprocessor keep so many bytes of local memory.

    Longer than where they keep none, and than writing and reading these takes anywhere. 0 where nobody has measured
    such structures. side: as of displaced copies. The machine is calibrated.
    """
    curve = []
    for threads, local_bytes, seconds in _copied(machine, element_bytes, elements, side):
        kept = threads * local_bytes
        words_s = local_bytes * local_byte_s(machine, element_bytes, kept, walking=True)
        curve.append((kept, seconds - words_s / (elements * element_bytes)))
    if not curve:
        return 0.0
    (_, none_s), *others = sorted(curve)
    return between([(kept, max(0.0, seconds - none_s)) for kept, seconds in others], kept_bytes)


def _copied(machine: Machine, element_bytes: int, elements: int, side: str) -> list[tuple[int, int, float]]:
    """Copies by few threads: how many, local memory of each, and seconds per byte."""
    assert machine.calibration is not None
    asked = (str(element_bytes), str(elements), "stay" if side == _STAY else side)
    found = []
    for name, rate in machine.calibration.structures_bytes_per_s.items():
        width, _, cells, _, threads, _, local, *where = name.split()
        if (width, cells, " ".join(where)) == asked:
            found.append((int(threads), int(local), 1 / rate))
    return found
