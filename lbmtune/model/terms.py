"""The terms of the model of one-step kernels on a GPU: seconds that an update takes of the whole device.

Each is a pure function of the case, the configuration, what was compiled and the calibration of a machine. They add up,
because what they stand for goes through the same memory; threads in flight then decide how much of its bandwidth is
used, and the issue of instructions is a bound of its own. Parameters come from micro-benchmarks alone.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log, prod
from typing import NamedTuple

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.march import SECTOR_BYTES, WARP, block_cells, blocks, shared_bytes
from lbmtune.model.machine import ACCESS_BYTES, Calibration, Machine
from lbmtune.model.occupancy import registers_allowed, threads_together
from lbmtune.model.sectors import Partial, partial_sectors
from lbmtune.records import Resources, Term

RUNS, SECTORS, LOCAL = "runs", "partial sectors", "local memory"
THREADS, WAVES = "threads in flight", "waves"

_ADDRESSES = {1: 60, 2: 32}
"""Registers beside what a thread keeps of its cells, by the number of lattices; as compiled for sm_90."""
WORD_BYTES = 4
"""What displaced copies move at once."""
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
        resources = replace(self.resources, shared_bytes=self.shared_bytes)
        return threads_together(self.config, resources, self.calibration.l1_bytes)

    @property
    def shared_bytes(self) -> int:
        """Of a block, what it asks for when it is launched included, which the compiler does not know."""
        asked = shared_bytes(self.case, self.config) if self.config.marches else 0
        return max(asked, self.resources.shared_bytes)

    @property
    def run_bytes(self) -> int:
        """Of a direction, what lies together before another one begins; 0: all of it."""
        config = self.config
        cells = self.case.domain[0] * config.pack if config.memory.name == "rows" else config.memory.run
        return cells * config.stored.bytes


def bandwidth(subject: Subject, *, by_runs: bool = True) -> float:
    """Bytes per second of a copy of 19 streams that lie as those of the kernel do, with the same access width.

    Streams that lie apart are as many open pages of memory, and closer ones are fewer. Source: measured,
    `Calibration.runs_bytes_per_s`, `in_place_bytes_per_s`, `listed_bytes_per_s`.
    """
    found, config, access = subject.calibration, subject.config, str(subject.access_bytes)
    rates, run = found.runs_bytes_per_s, subject.run_bytes if by_runs else 0
    apart = found.in_place_bytes_per_s[access] if config.propagation.in_place else rates[access]
    if config.indirect:
        apart *= _by_list(subject)
    if not run:
        return apart
    known = {int(name.split()[2]): name for name in rates if name.startswith(f"{access} of ")}
    return apart / rates[access] * rates[known[min(known, key=lambda size: abs(log(size / run)))]]


def _by_list(subject: Subject) -> float:
    """How much faster, or slower, bytes go that are loaded more often than stored, and by a list."""
    found, config = subject.calibration, subject.config
    access = str(config.stored.bytes)
    side = "in place" if config.propagation.in_place else "stores" if config.scheme == "push" else "loads"
    listed = found.listed_bytes_per_s.get(f"{access} {side}")
    if listed is None:
        return 1.0
    plain = found.in_place_bytes_per_s if config.propagation.in_place else found.runs_bytes_per_s
    return listed / plain[access]


def runs(subject: Subject) -> Term:
    """What streams in runs take more, or less, than such that lie apart."""
    moved = traffic(subject.case, subject.config).total
    apart, here = (moved / bandwidth(subject, by_runs=by_runs) for by_runs in (False, True))
    sentence = f"{subject.run_bytes or 'all'} bytes of a stream lie together"
    return Term(name=RUNS, seconds=here - apart, sentence=sentence, source="micro-benchmark `runs`")


def partial(subject: Subject) -> Term:
    """What sectors take that a block touches but does not fill (`model.sectors`)."""
    alone = 0 < subject.run_bytes < SECTOR_BYTES  # the copy of single elements has them already
    found = Partial(0.0, 0.0) if alone else partial_sectors(subject.case, subject.config)
    return Term(
        name=SECTORS,
        seconds=_partial_s(found, subject),
        sentence=f"{found.loads:.3g} loaded and {found.stores:.3g} stored in part per update",
        source="counted on the layout; micro-benchmarks `shifted_loads`, `shifted_stores`, `in_place`",
    )


def _partial_s(partial: Partial, subject: Subject) -> float:
    """Stores to where the same thread has loaded find their sector in the cache: both sides were measured together."""
    found, block = subject.calibration, subject.config.block
    beside = (prod(block) if subject.config.indirect else block[0]) // WARP
    if subject.config.propagation.in_place:
        aligned = found.in_place_bytes_per_s[str(WORD_BYTES)]
        displaced = {
            int(name.split()[-1]): rate for name, rate in found.in_place_bytes_per_s.items() if "displaced" in name
        }
        both = _per_sector_s(displaced, dict.fromkeys(displaced, aligned), beside)
        return (partial.loads + partial.stores) / 2 * both
    aligned_by_block = {int(name): rate for name, rate in found.blocks_bytes_per_s.items()}
    loads, stores = (
        _per_sector_s({int(name): rate for name, rate in rates.items()}, aligned_by_block, beside)
        for rates in (found.shifted_loads_bytes_per_s, found.shifted_stores_bytes_per_s)
    )
    return partial.loads * loads + partial.stores * stores


def _per_sector_s(displaced: Mapping[int, float], aligned: Mapping[int, float], beside: int) -> float:
    """Of a sector that two warps share, so many of which lie side by side in a block: each has two for each stream."""
    threads = min(displaced, key=lambda count: abs(log(count / (WARP * max(1, beside)))))
    moved = 2 * WORD_BYTES * threads
    return max(0.0, moved / displaced[threads] - moved / aligned[threads]) / (threads // WARP) / 2


def local_memory(subject: Subject) -> Term:
    """What registers that were spilled take: to and from L1, or L2, or memory, where the threads in flight need more.

    Source: CUDA C++ Programming Guide, local memory; rates `Calibration.local_bytes_per_s`.
    """
    moved = spilled_bytes(subject)
    return Term(
        name=LOCAL,
        seconds=_local_s(subject, moved) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmark `local`",
    )


def _local_s(subject: Subject, moved: float) -> float:
    rates, machine = subject.calibration.local_bytes_per_s, subject.machine
    blocks = subject.threads // prod(subject.config.block)
    of_each = subject.threads * subject.resources.local_bytes
    if of_each + blocks * subject.shared_bytes <= subject.calibration.l1_bytes:
        return moved / rates["L1"]
    return moved / rates["L2" if of_each * machine.multiprocessors <= machine.caches_bytes["L2"] else "memory"]


def spilled_bytes(subject: Subject) -> float:
    """Bytes per update that go to local memory and come back.

    What is known is the largest of all entries. Where the parities have entries of their own, the one that reaches for
    its neighbours spills, and the other one hardly.
    """
    config = subject.config
    if config.marches:
        from lbmtune.codegen.cuda.march import planes_together  # here: it prints kernels, which needs SymPy

        cells = config.cells_per_thread * config.rows * config.steps * planes_together(subject.case, config)
        return subject.resources.spill_bytes / cells
    entries = 2 if config.propagation.name == "aa" else 1
    return subject.resources.spill_bytes / config.cells_per_thread / entries


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
        return -(-case.fluid_sites // (prod(config.block) * config.cells_per_thread))
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


SECONDS: Mapping[str, Callable[[Subject], Term]] = {RUNS: runs, SECTORS: partial, LOCAL: local_memory}
"""Terms that are added to the bytes."""
SHARES: Mapping[str, Callable[[Subject], float]] = {THREADS: in_flight, WAVES: waves}
"""Of the bandwidth that is in use."""


def estimated(case: Case, config: CudaConfig) -> Resources:
    """What a kernel is likely to use, where nobody has compiled it."""
    if config.marches:
        from lbmtune.model.issue import registers  # here: it prints kernels, which needs SymPy

        wanted, shared = registers(case, config), shared_bytes(case, config)
    else:
        words = config.computed.bytes // 4
        wanted = _ADDRESSES[config.propagation.lattices] + words * config.cells_per_thread * case.stencil.q
        shared = 0
    allowed = config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
    spilled = 4 * max(0, wanted - allowed)
    return Resources(
        registers=min(wanted, allowed),
        spill_bytes=_TIMES_SPILLED * spilled,
        local_bytes=spilled,
        shared_bytes=shared,
    )
