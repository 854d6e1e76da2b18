"""Bytes that a GPU's memory moves because something is read again when its L2 cache has lost it.

How much the cache keeps is measured (`Calibration.again_bytes_per_s`): tiles that are read, and read again when so many
bytes have come and gone. What is read again is counted: the planes around the chunk of a march, and sectors whose
values are read in several planes of the domain.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from math import prod

from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES, blocks, passed_planes
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import index
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage import Domain, frame
from lbmtune.lattice import Lattice
from lbmtune.model.gpu.solid_cells import whole_sectors
from lbmtune.model.machine.description import Machine

_ROUNDS, _TIMES = 40, 40
"""In which bytes that are read again are counted with what goes through the cache; times in the life of a block."""


def kept(machine: Machine, between_bytes: float) -> float:
    """Share of what is read that the L2 cache still has after so many bytes have come and gone.

    Where nobody has measured it: all of it, as long as there is room for these.
    """
    measured = machine.calibration.again_bytes_per_s if machine.calibration else {}
    if not measured:
        return float(between_bytes <= machine.caches_bytes.get("L2", 0))
    curve = sorted((int(between), 1 / rate) for between, rate in measured.items())
    (_, soon), (_, never) = curve[0], curve[-1]
    after = bisect([between for between, _ in curve], between_bytes)
    if after in (0, len(curve)):
        return float(after == 0)
    (x0, y0), (x1, y1) = curve[after - 1], curve[after]
    byte_s = y0 + (y1 - y0) * (between_bytes - x0) / (x1 - x0)
    return min(1.0, max(0.0, (never - byte_s) / (never - soon)))


def memory_bytes(case: Case, config: KernelConfig, machine: Machine, at_once: int = 0) -> float:
    """Of an update, to and from memory: its traffic, what is read again, and what solid cells leave of sectors.

    at_once: blocks that run at the same time; 0: one on each multiprocessor.
    """
    moved = traffic(case, config).total
    if not isinstance(config, CudaConfig) or config.resident:
        return moved
    if config.marches:
        return moved + planes_again(case, config, machine, at_once)
    return moved + sectors_again(case, config, machine, at_once) + whole_sectors(case, config)


def planes_again(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Bytes per update of the planes before and after each chunk, which belong to others.

    When the next block of a column begins with them, all that the device moves meanwhile has gone through the cache.
    """
    found, flat = blocks(case, config), case.stencil.dimensions == 2
    height, chunks = (case.domain[1], found[1]) if flat else (case.domain[2], found[2])
    passed = passed_planes(case, config)
    taken = chunks * passed[0] if config.chunks == "even" else sum(passed)
    moved = traffic(case, config)
    launch_bytes = moved.total * config.steps * case.sites
    between = launch_bytes * min(1.0, (at_once or machine.multiprocessors) / prod(found))
    return moved.populations / 2 * (taken / height - 1) * (1 - kept(machine, between))


def sectors_again(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Bytes per update of sectors that hold values of several directions, which are read from different planes.

    Of layouts whose streams lie in runs shorter than a sector. Blocks begin in order, so that a plane of all that is
    moved goes through the cache from one read to the next, what is read again included; but each loads at some time in
    the first half of its life, and in a life all blocks that run at the same time come and go.
    """
    run = config.memory.run * config.stored.bytes
    if config.indirect or not 0 < run < SECTOR_BYTES:
        return 0.0
    alive = (at_once or machine.multiprocessors) * prod(config.block_cells(case.stencil))
    plane, moved, again = prod(case.domain[:2]), traffic(case, config).total, 0.0
    cells, gaps = _visits(case.stencil, case.domain, config)
    for _ in range(_ROUNDS):
        through = moved + again
        lost = (count * _lost(machine, gap * plane * through, alive / 2 * through) for gap, count in gaps.items())
        again = SECTOR_BYTES * sum(lost) / cells
    return again


def _lost(machine: Machine, between_bytes: float, apart_bytes: float) -> float:
    """Share that the cache has lost after so many bytes, where both ends of that lie anywhere in so many others."""
    times = [(2 * n + 1) / _TIMES - 1 for n in range(_TIMES)]
    lost = sum((1 - abs(t)) * (1 - kept(machine, abs(between_bytes + t * apart_bytes))) for t in times)
    return lost / sum(1 - abs(t) for t in times)


@lru_cache(maxsize=256)
def _visits(stencil: Lattice, domain: tuple[int, int, int], config: CudaConfig) -> tuple[int, Counter[int]]:
    """Cells that were looked at, over all parities, and how often their sectors are read again so many planes later."""
    scheme, extents = config.propagation, frame(stencil, config).extents(Domain(*domain))
    gaps: Counter[int] = Counter()
    for parity in range(scheme.period):
        planes: dict[int, set[int]] = {}
        for access in (one for phase in scheme.passes(stencil, parity) for one in phase.accesses):
            for x in range(SECTOR_BYTES):  # so many cells are whole sectors, whatever a cell has
                element = int(index(config.memory, extents, x, 0, 0, access.read.slot))
                planes.setdefault(element * config.stored.bytes // SECTOR_BYTES, set()).add(access.read.offset[2])
        gaps.update(later - sooner for each in planes.values() for sooner, later in pairwise(sorted(each)))
    return SECTOR_BYTES * scheme.period, gaps
