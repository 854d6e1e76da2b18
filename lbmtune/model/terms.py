"""The terms of the model of one-step kernels on a GPU: seconds that an update takes of the whole device.

Each is a pure function of the case, the configuration, what was compiled and the calibration of a machine. They add up,
because what they stand for goes through the same memory; threads in flight then decide how much of its bandwidth is
used, and the issue of instructions is a bound of its own. Parameters come from micro-benchmarks alone.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from math import log, prod
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.march import SECTOR_BYTES, block_cells, blocks, shared_bytes
from lbmtune.model.machine import ACCESS_BYTES, Calibration, Machine
from lbmtune.model.occupancy import registers_allowed, threads_together
from lbmtune.model.sectors import partial_sectors
from lbmtune.records import Resources

_ADDRESSES = {1: 60, 2: 32}
"""Registers beside what a thread keeps of its cells, by the number of lattices; as compiled for sm_90."""
_TIMES_SPILLED = 3
"""How often what is spilled is stored or loaded; from the same."""


class Subject(NamedTuple):
    """What is predicted: a configuration of a case on a machine, and what its compiled kernel uses."""

    case: Case
    config: CudaConfig
    machine: Machine
    calibration: Calibration
    resources: Resources

    @property
    def access_bytes(self) -> int:
        """What a thread loads or stores at once."""
        config = self.config
        return min(config.cells_per_thread * config.pack * config.stored.bytes, ACCESS_BYTES)

    @property
    def threads(self) -> int:
        """Those that share a multiprocessor."""
        return threads_together(self.config, self.resources, self.calibration.l1_bytes)

    @property
    def run_bytes(self) -> int:
        """Of a direction, what lies together before another one begins; 0: all of it."""
        config = self.config
        cells = self.case.domain[0] * config.pack if config.memory.name == "rows" else config.memory.run
        return cells * config.stored.bytes


def bandwidth(subject: Subject, *, by_runs: bool = True) -> float:
    """Bytes per second of a copy of 19 streams that lie as those of the kernel do, with the same access width.

    Streams that lie apart are as many open pages of memory, and closer ones are fewer. Source: measured,
    `Calibration.runs_bytes_per_s`.
    """
    rates, access = subject.calibration.runs_bytes_per_s, subject.access_bytes
    run = subject.run_bytes if by_runs else 0
    if not run:
        return rates[str(access)]
    known = {int(name.split()[2]): name for name in rates if name.startswith(f"{access} of ")}
    return rates[known[min(known, key=lambda size: abs(log(size / run)))]]


def streams_s(subject: Subject) -> float:
    """Bytes of an update over the bandwidth of streams that lie apart. Source: Wellein et al. 2006."""
    return traffic(subject.case, subject.config).total / bandwidth(subject, by_runs=False)


def runs_s(subject: Subject) -> float:
    """What streams in runs take more, or less."""
    return traffic(subject.case, subject.config).total / bandwidth(subject) - streams_s(subject)


def partial_s(subject: Subject) -> float:
    """What sectors take that a block touches but does not fill (`model.sectors`)."""
    config = subject.config
    if 0 < subject.run_bytes < SECTOR_BYTES:
        return 0.0  # the copy of single elements has them already
    partial = partial_sectors(subject.case, config)
    found = subject.calibration
    loads, stores = (
        _per_sector_s(found, rates) for rates in (found.shifted_loads_bytes_per_s, found.shifted_stores_bytes_per_s)
    )
    return partial.loads * loads + partial.stores * stores


def _per_sector_s(found: Calibration, rates: Mapping[str, float]) -> float:
    """Of a sector that two blocks share: a displaced side of a copy by blocks of one warp has two for each stream."""
    block = min(rates, key=int)
    moved = 2 * 4 * int(block)
    return max(0.0, moved / rates[block] - moved / found.blocks_bytes_per_s[block]) / 2


def local_s(subject: Subject) -> float:
    """What registers that were spilled take: to and from L1, or L2, or memory, where the threads in flight need more.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    moved = spilled_bytes(subject)
    if not moved:
        return 0.0
    found, machine = subject.calibration, subject.machine
    at_once = subject.threads * subject.resources.local_bytes
    blocks = subject.threads // prod(subject.config.block)
    beyond_l1 = _beyond(at_once, found.l1_bytes - blocks * subject.resources.shared_bytes)
    beyond_l2 = _beyond(at_once * machine.multiprocessors, machine.caches_bytes["L2"])
    shares = {"L1": 1 - beyond_l1, "L2": beyond_l1 - min(beyond_l1, beyond_l2), "memory": min(beyond_l1, beyond_l2)}
    return sum(share * moved / found.local_bytes_per_s[level] for level, share in shares.items())


def _beyond(needed: float, room: float) -> float:
    """Share of what is used in turn that a cache does not hold."""
    return max(0.0, 1 - room / needed) if needed else 0.0


def spilled_bytes(subject: Subject) -> float:
    """Bytes per update that go to local memory and come back.

    What is known is the largest of all entries. Where the parities have entries of their own, the one that reaches for
    its neighbours spills, and the other one hardly.
    """
    config = subject.config
    entries = 2 if config.propagation.name == "aa" else 1
    cells = config.cells_per_thread * (config.rows * config.steps if config.marches else 1)
    return subject.resources.spill_bytes / cells / entries


def in_flight(subject: Subject, share: float = 1.0) -> float:
    """Share of the bandwidth that the loads in flight make use of: Little's law, as measured.

    share: of the multiprocessors that are at work.
    Source: Volkov 2016; `Calibration.threads_bytes_per_s`, for 19 loads of each thread.
    """
    access = subject.access_bytes
    curve = sorted(
        (int(name.split()[2]), rate)
        for name, rate in subject.calibration.threads_bytes_per_s.items()
        if name.startswith(f"{access} by ")
    )
    loads = subject.config.kept.values(subject.case.stencil) * subject.config.rows / subject.machine.streams
    return _between(curve, share * subject.threads * loads) / max(rate for _, rate in curve)


def waves(subject: Subject) -> float:
    """Share of the bandwidth that is left where the last wave of blocks does not fill the device.

    What is left of them has more bandwidth each, as long as their loads in flight make use of it.
    """
    blocks = _blocks(subject)
    at_once = subject.machine.multiprocessors * max(1, subject.threads // prod(subject.config.block))
    full, rest = blocks // at_once, blocks % at_once / at_once
    last = min(1.0, rest * max(1.0, in_flight(subject) / in_flight(subject, rest))) if rest else 0.0
    return (full + rest) / (full + last)


def _blocks(subject: Subject) -> int:
    """Of a launch over all cells."""
    case, config = subject.case, subject.config
    if config.indirect:
        return -(-case.fluid_sites // (prod(config.block) * config.cells_per_thread * config.march))
    if config.marches:
        return prod(blocks(case, config))
    return prod(-(-n // cells) for n, cells in zip(case.domain, block_cells(case.stencil, config), strict=True))


def _between(curve: list[tuple[int, float]], at: float) -> float:
    """Linear between measured points, from nothing to the first, and as the last one beyond."""
    points = [(0, 0.0), *curve]
    after = bisect([x for x, _ in points], at)
    if after == len(points):
        return points[-1][1]
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0)


SECONDS: Mapping[str, Callable[[Subject], float]] = {
    "streams": streams_s,
    "runs": runs_s,
    "partial sectors": partial_s,
    "local memory": local_s,
}
"""Terms that add up. `streams` is never left out."""


def estimated(case: Case, config: CudaConfig) -> Resources:
    """What a kernel is likely to use, where nobody has compiled it."""
    if config.marches:
        from lbmtune.model.issue import registers  # here: it prints kernels, which needs SymPy

        wanted, shared = registers(case, config), shared_bytes(case, config)
    else:
        # with a list, few words are read ahead, and no populations
        words, sets = config.computed.bytes // 4, 1 + (0 if config.indirect else config.prefetch)
        wanted = _ADDRESSES[config.propagation.lattices] + words * sets * config.cells_per_thread * case.stencil.q
        shared = 0
    allowed = config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
    spilled = 4 * max(0, wanted - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_SPILLED * spilled,
        local_bytes=spilled,
        shared_bytes=shared,
    )
