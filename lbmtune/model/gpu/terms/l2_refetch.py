"""Bytes that memory moves again because L2 no longer holds them: sectors with values of several planes.

How much L2 retains is measured (`Calibration.again_bytes_per_s`); what is read again is counted.
"""

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.layouts.layout import index
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.lattice import Lattice
from lbmtune.model.gpu.terms.solid_cells import whole_sectors
from lbmtune.model.machine.curves import retained_in_l2
from lbmtune.model.machine.description import Machine

_ROUNDS, _TIMES = 40, 40
"""Iterations of the fixed point of refetched bytes; instants in the life of a block."""


def box_memory_bytes(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update that memory moves for one step of a box: traffic, refetches, rest of sectors.

    at_once: blocks that run at the same time; 0: one per multiprocessor.
    """
    moved = traffic(case, config).total
    return moved + refetched_sector_bytes(case, config, machine, at_once) + whole_sectors(case, config)


def refetched_sector_bytes(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update of sectors whose values of several directions are read from different planes.

    Applies to layouts whose runs are shorter than a sector. Blocks begin in order, so one plane of all that is moved
    passes through L2 from one read to the next, refetches included. Each block loads at some time in the first half of
    its life, during which all concurrent blocks come and go.
    """
    run = config.memory.run * config.stored.bytes
    if not 0 < run < SECTOR_BYTES:
        return 0.0
    alive = (at_once or machine.multiprocessors) * prod(config.block_cells(case.stencil))
    plane, moved, refetched = prod(case.domain[:2]), traffic(case, config).total, 0.0
    cells, gaps = _visits(case.stencil, case.domain, config)
    for _ in range(_ROUNDS):
        through = moved + refetched
        lost = (count * _lost(machine, gap * plane * through, alive / 2 * through) for gap, count in gaps.items())
        refetched = SECTOR_BYTES * sum(lost) / cells
    return refetched


def _lost(machine: Machine, between_bytes: float, apart_bytes: float) -> float:
    """Return the share that L2 has lost after a number of bytes, whose ends both vary by up to `apart_bytes`."""
    times = [(2 * n + 1) / _TIMES - 1 for n in range(_TIMES)]
    lost = sum((1 - abs(t)) * (1 - retained_in_l2(machine, abs(between_bytes + t * apart_bytes))) for t in times)
    return lost / sum(1 - abs(t) for t in times)


@lru_cache(maxsize=256)
def _visits(stencil: Lattice, domain: tuple[int, int, int], config: CudaConfig) -> tuple[int, Counter[int]]:
    """Return the sampled cells, over all parities, and how often a sector is read again by the gap in planes."""
    scheme, extents = config.propagation, config.frame(stencil).extents(Domain(*domain))
    gaps: Counter[int] = Counter()
    for parity in range(scheme.period):
        planes: dict[int, set[int]] = {}
        for access in (one for phase in scheme.passes(stencil, parity) for one in phase.accesses):
            for x in range(SECTOR_BYTES):  # as many cells are whole sectors for any element size
                element = int(index(config.memory, extents, x, 0, 0, access.read.slot))
                planes.setdefault(element * config.stored.bytes // SECTOR_BYTES, set()).add(access.read.offset[2])
        gaps.update(later - sooner for each in planes.values() for sooner, later in pairwise(sorted(each)))
    return SECTOR_BYTES * scheme.period, gaps
