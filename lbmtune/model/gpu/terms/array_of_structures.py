"""Arrays of structures: how fast copies are that move what a scheme moves, and how that depends on the caches.

Each sector holds values of several directions, which cells of several planes access. In place it is loaded once and
stored in pieces by threads of these planes; L2 merges the pieces while it retains the sector. How long that is follows
from what passes through L2 meanwhile: one plane, and the local memory of threads; or, if threads walk from plane to
plane, what all of them touch. Local memory that lasts from the loads to the stores delays them besides. Copies that do
so are measured (`Calibration.displaced_bytes_per_s`, `planes_bytes_per_s`, `structures_bytes_per_s`).
A ring of ghost cells has a few elements of each structure, and the rest of its sectors comes along: copies of parts
(`Calibration.parts_bytes_per_s`).
"""

from functools import lru_cache
from math import prod

import numpy as np

from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.lattice import lattice
from lbmtune.model.gpu.inputs import Inputs, displaced_side, walking_suffix
from lbmtune.model.machine.benchmark_names import BLOCK, Structures
from lbmtune.model.machine.curves import by_number, interpolated, local_byte_s, nearest
from lbmtune.model.machine.description import Machine
from lbmtune.records import Entry

_STAY = "none"
"""Side of a copy without displacements."""
_COPYING = {(4, 19): 1280, (4, 27): 1152, (8, 19): 1024, (8, 27): 768}
"""Resident threads of displaced copies of structures, by bytes of an element and number of elements: with 48, 56, 64
and 80 registers each, as compiled for compute capability 9.0."""


def of_structures(inputs: Inputs) -> float:
    """Return bytes per second: each access of a warp touches all lines of its cells, as many as a cell has elements."""
    config, stencil = inputs.config, inputs.case.stencil
    if not inputs.displaces:
        return undisplaced(inputs)
    if has_parts(inputs):
        own_s = 2 * stencil.q * config.stored.bytes / undisplaced(inputs)
        return traffic(inputs.case, config).populations / (own_s + ring_s(inputs))
    elements = _elements(inputs)
    passes = config.propagation.all_passes(stencil)
    compiled = inputs.entries or [inputs.resources] * len(passes)
    moved = [len(phase.accesses) for phase in passes]
    byte_s = (_byte_s(inputs, elements, phase, entry) for phase, entry in zip(passes, compiled, strict=True))
    return sum(moved) / sum(count * seconds for count, seconds in zip(moved, byte_s, strict=True))


def undisplaced(inputs: Inputs) -> float:
    """Return bytes per second of a copy whose elements all stay in their own structure."""
    return inputs.calibration.displaced_bytes_per_s[f"{_copies(inputs)}{_elements(inputs)} {_STAY} by {BLOCK}"]


def _copies(inputs: Inputs) -> str:
    """Return how the names of copies by accesses as wide as an element begin."""
    return f"{inputs.config.stored.bytes} of {inputs.config.stored.bytes} x "


def _elements(inputs: Inputs) -> int:
    """Return the elements of the measured structures that are closest to those of the kernel."""
    name, rates = _copies(inputs), inputs.calibration.displaced_bytes_per_s
    known = {int(one.split()[4]) for one in rates if one.startswith(name)}
    return nearest(known, inputs.config.kept.values(inputs.case.stencil))


def _byte_s(inputs: Inputs, elements: int, phase: Phase, entry: Entry) -> float:
    """Return the seconds per byte of a pass. elements: of the measured structures."""
    config, side = inputs.config, displaced_side(phase)
    kept_bytes = inputs.threads_with(entry.registers) * entry.local_bytes
    name = f"{_copies(inputs)}{elements} {side} by {BLOCK}{walking_suffix(inputs)}"
    as_many_s = 1 / inputs.calibration.displaced_bytes_per_s[name]
    copied_s = as_many_s
    if side != _STAY:
        copied_s = inputs.displaced_byte_s(elements, phase, entry, as_many_s)
    return copied_s + longer_s(inputs.machine, config.stored.bytes, elements, side, kept_bytes)


def walked_s(inputs: Inputs, elements: int, phase: Phase, entry: Entry, as_many_s: float) -> float:
    """Return seconds per byte of threads that walk: between copies by few threads, and by as many as fit."""
    side, threads = displaced_side(phase), inputs.threads_with(entry.registers)
    copied = (inputs.config.stored.bytes, elements)
    few = [(count, seconds) for count, local, seconds in _copied(inputs.machine, *copied, side) if not local]
    if not few:
        return as_many_s
    (count, few_s), most = few[0], _COPYING[copied]
    share = min(1.0, max(0.0, (threads - count) / (most - count))) if count < most else 1.0
    return few_s + share * (as_many_s - few_s)


def by_planes_s(inputs: Inputs, elements: int, phase: Phase, entry: Entry, as_many_s: float) -> float:
    """Return seconds per byte of threads with one cell each.

    They exceed those of a copy without displacements by two factors: how far planes lie apart in what goes through the
    cache, and the share of elements in other planes than their cell. as_many_s: result without a measurement of planes.
    """
    case, config, rates = inputs.case, inputs.config, inputs.calibration
    width, side = config.stored.bytes, displaced_side(phase)
    known = by_number(tuple(rates.planes_bytes_per_s), "", f" {width} x {elements} {side}")
    if not known:
        return as_many_s
    none_s = 1 / undisplaced(inputs)
    curve = [(float(apart), 1 / rates.planes_bytes_per_s[name] - none_s) for apart, name in sorted(known.items())]
    x, y, _ = case.domain
    # in place a structure is cached once, with two arrays twice
    cached_bytes = (1 if side == "in place" else 2) * elements * width
    kept_bytes = inputs.threads_with(entry.registers) * entry.local_bytes
    # of three groups of a copy, one is displaced a plane back, one not, one a plane forward
    in_copy = sum(n // 3 % 3 != 1 for n in range(elements)) / elements
    apart = x * y + kept_bytes * inputs.machine.multiprocessors / cached_bytes
    return none_s + interpolated(curve, apart) * _in_other_planes(phase, side) / in_copy


def _in_other_planes(phase: Phase, side: str) -> float:
    """Return the share of accesses of a pass, on the displaced side, that lie in other planes."""
    places = [one.write if side == "stores" else one.read for one in phase.accesses]
    return sum(one.offset[2] != 0 for one in places) / len(places)


def has_parts(inputs: Inputs) -> bool:
    """Return whether a kernel has rings of ghost cells in structures, and copies of parts were measured."""
    config = inputs.config
    cut = any(config.frame(inputs.case.stencil).blocks or ())
    return cut and 0 < inputs.run_bytes < SECTOR_BYTES and bool(inputs.calibration.parts_bytes_per_s)


def ring_s(inputs: Inputs) -> float:
    """Return the seconds per update of refreshing rings of ghost cells, with a few elements of each structure.

    A copy of as many elements loads their sectors, and completes and stores the sectors of the target. Two effects are
    left out that cancel for eleven kernels (`docs/design/gpu.md`): the kernel that collides loads rings again, and
    several rings of a plane are refreshed from the same cells.
    """
    config, stencil, rates = inputs.config, inputs.case.stencil, inputs.calibration.parts_bytes_per_s
    width = config.stored.bytes
    of_width = {int(name.split()[2]) for name in rates if name.startswith(f"{width} x ")}
    before = f"{width} x {nearest(of_width, stencil.q)} "
    curve = [(float(n), 2 * n * width / rates[name]) for n, name in sorted(by_number(tuple(rates), before).items())]
    return sum(
        share * interpolated(curve, count) for count, share in _ghosts(stencil.name, config.scheme, config.block)
    )


@lru_cache(maxsize=1024)
def _ghosts(name: str, scheme: str, block: tuple[int, int, int]) -> tuple[tuple[int, float], ...]:
    """Return the elements of a ghost cell that are read, and how many such cells there are per cell of a block."""
    stencil = lattice(name)
    read = np.zeros([n + 2 for n in block], int)
    for access in SCHEMES[scheme].phase(stencil, 0).accesses:
        x, y, z = access.read.offset
        read[1 + x :, 1 + y :, 1 + z :][: block[0], : block[1], : block[2]] += 1
    read[1:-1, 1:-1, 1:-1] = 0
    found = np.bincount(read.ravel())[1:]
    return tuple((count, float(cells) / prod(block)) for count, cells in enumerate(found, 1) if cells)


def longer_s(machine: Machine, element_bytes: int, elements: int, side: str, kept_bytes: float) -> float:
    """Return the additional seconds per byte moved if the threads of a multiprocessor keep local memory.

    Excess over copies without local memory, and over the time of local memory itself; 0 if such structures were not
    measured. side: of displaced copies. The machine has to be calibrated.
    """
    curve = []
    for threads, local_bytes, seconds in _copied(machine, element_bytes, elements, side):
        kept = threads * local_bytes
        words_s = local_bytes * local_byte_s(machine, element_bytes, kept, walking=True)
        curve.append((kept, seconds - words_s / (elements * element_bytes)))
    if not curve:
        return 0.0
    (_, none_s), *others = sorted(curve)
    return interpolated([(kept, max(0.0, seconds - none_s)) for kept, seconds in others], kept_bytes)


def _copied(machine: Machine, element_bytes: int, elements: int, side: str) -> list[tuple[int, int, float]]:
    """Return copies by few threads: how many threads, local memory of each, and seconds per byte."""
    assert machine.calibration is not None
    rates = machine.calibration.structures_bytes_per_s
    wanted = (element_bytes, elements, "stay" if side == _STAY else side)
    copies = ((Structures.named(name), rate) for name, rate in rates.items())
    return [
        (one.threads, one.local_bytes, 1 / rate)
        for one, rate in copies
        if (one.element_bytes, one.elements, one.side) == wanted
    ]
