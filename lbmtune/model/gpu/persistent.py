"""What a step takes of a kernel that keeps populations or moments on chip: blocks meet, and compute in between.

Instructions are counted as in `model.gpu.instruction_issue`: the collision on the printed text, and one for each value
that is taken out of shared memory, put back, sent and received; of moments the stage of a march, and pieces of 16
bytes. Addresses
are not counted.

Of populations all warps take what a cell keeps, collide and leave it at the same time, so that nothing hides behind
another. Of moments a warp goes up its column plane by plane, waits for what it has loaded, and the others of its
scheduler go on meanwhile (`model.gpu.mva`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import NamedTuple

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.persistent import face_values, planes_together, shared_bytes
from lbmtune.catalogue.limits import SCHEDULERS, WARP, cuda_limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.physics import collide_function, collision_scalars
from lbmtune.model.gpu.inputs import ISSUE, LATENCY, LOCAL, MEETING
from lbmtune.model.gpu.instruction_issue import rates, slots_of_doubles, stage_of
from lbmtune.model.gpu.mva import shares
from lbmtune.model.gpu.occupancy import left_of_l1, warps_of
from lbmtune.model.gpu.spills import left_in_l1
from lbmtune.model.gpu.temporal_blocking import EXCHANGE
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.description import ACCESS_BYTES, Calibration, Machine
from lbmtune.records import Resources, Term

_WORD_BYTES, _ADDED = 4, 2
"""_ADDED: additions for a value from another tile, as in D3Q19, of which 12 take 5 sums."""
_LOADED, _TOGETHER = 0.47, 7
"""Share of what a kernel spills that keeps populations that is loaded, and how many loads stand together before one of
them is needed; from three that were compiled for compute capability 9.0."""
_LOADED_OF_MOMENTS, _TOGETHER_OF_MOMENTS = 0.49, 4
"""The same of moments; medians of 52 kernels."""
_OF_COLUMN = 100
"""Instructions of a column, for each cell that a thread has in a plane, besides those counted: what comes from above
and below, what goes there, addresses of faces.

Loops over one, two and three planes of two cells have 714, 1138 and 1566 instructions: 288 in which planes have no
part, of which 80 are counted."""
_IN_STEPS = {True: 0.66, False: 0.87}
"""Share of what the text of moments stores and loads of spilled registers that lies in the loop over steps, where
registers keep planes, so that all passes over a tile are written out, and where one pass is written; medians of 28 and
of 24 kernels. The rest is what begins and ends a launch."""
_STALLED = 0.87
"""Cycles for which an instruction keeps its warp from the next one besides that of its own, by the control codes of
28 loops that spill nothing (0.71 to 1.03)."""
_NEAR, _NEAR_OF_CELL = 2.0, 1.5
"""Places at which a warp waits for shared memory or another lane: of a plane, and of each cell that a thread has in it;
from the same loops (5 of two cells, 7.3 of three, 9.5 of five)."""
_NEAR_CYCLES = 29
"""How long such a place takes: the latency of shared memory.

Source: Luo et al. 2024, Benchmarking and dissecting the Nvidia Hopper GPU architecture (arXiv:2402.13499)."""
_MET = {"all": "of all blocks", "neighbours": "of neighbours, taken for that of all blocks, which was measured"}
"""Who a block waits for: by kernels that wait for neighbours these save 0 to 25 % of a step, which no micro-benchmark
says."""
_FAR, _FAR_OF_COLUMN = 1, 2
"""Places at which a warp waits for the L2 cache: of a plane, for what comes in along y, and of a column, for what comes
from above and below."""


class Step(NamedTuple):
    """slots: issued for an update; exchanges: words that go to and from shared memory. Times are those of a step.

    meeting_s: from what a block sends until the others have read it, as measured; blocks: those that share a
    multiprocessor; cycle_s: of its clock; source: of the other rates.
    """

    slots: float
    seconds: float
    exchanges: float
    exchange_s: float
    meeting_s: float
    blocks: int
    cycle_s: float
    source: str


def terms(
    case: Case, config: CudaConfig, machine: Machine, resources: Resources, without: Collection[str]
) -> list[Term]:
    """Blocks meet in every step; what they send stays in the caches. None where nobody has calibrated the machine."""
    found = step(case, config, machine)
    if found is None or machine.calibration is None:
        return []
    meeting = Term(
        name=MEETING,
        seconds=found.meeting_s / case.fluid_sites,
        sentence=f"{_MET[config.meeting]}, {found.meeting_s * 1e6:.3g} us per step",
        source="micro-benchmark `meeting`",
    )
    instructions = Term(
        name=ISSUE,
        seconds=found.seconds / case.fluid_sites,
        sentence=f"{found.slots:.0f} slots per update",
        source=found.source,
    )
    exchanges = Term(
        name=EXCHANGE,
        seconds=found.exchange_s / case.fluid_sites,
        sentence=f"{found.exchanges:.0f} words in shared memory per update",
        source=found.source,
    )
    kept = [one for one in (meeting,) if one.name not in without]
    if config.of_moments:
        local, answers_s = _spilled_of_moments(case, config, machine, machine.calibration, resources, found)
        stations = [one for one in (instructions, exchanges, local) if one.name not in without]
        waits_s = 0.0 if LATENCY in without else _waits_s(config, machine.calibration, found)
        waits_s += 0.0 if LOCAL in without else answers_s
        return kept + _overlapped(case, config, stations, waits_s, found.blocks)
    stations = [instructions, exchanges, _spilled_of_populations(case, config, machine.calibration, resources)]
    return kept + [one for one in stations if one.name not in without]


def _overlapped(case: Case, config: CudaConfig, stations: list[Term], waits_s: float, blocks: int) -> list[Term]:
    """What the warps of a scheduler hide of each other. waits_s: of a warp, in a step, whatever others do."""
    warps = max(1, -(-blocks * warps_of(config) // SCHEDULERS))
    alone_s = waits_s / case.fluid_sites
    found = shares([one.seconds for one in stations], warps * alone_s, warps)
    latency = Term(
        name=LATENCY,
        seconds=found.delay,
        sentence=f"a warp waits for {waits_s * 1e6:.2g} us in a step, beside {warps - 1} others of its scheduler",
        source="compiled code; micro-benchmark `latency`",
    )
    taken = [replace(one, seconds=seconds) for one, seconds in zip(stations, found.stations, strict=True)]
    return [*taken, latency]


def _waits_s(config: CudaConfig, calibration: Calibration, found: Step) -> float:
    """What a warp waits in a step: after its instructions, for shared memory and other lanes, and for other tiles."""
    cells = config.rows * config.cells_per_thread
    plane_cycles = _STALLED * found.slots * cells + _NEAR_CYCLES * (_NEAR + _NEAR_OF_CELL * cells)
    answers = _FAR * config.march + _FAR_OF_COLUMN
    return config.march * plane_cycles * found.cycle_s + answers * calibration.l2_latency_s


def _spilled_of_populations(case: Case, config: CudaConfig, calibration: Calibration, resources: Resources) -> Term:
    """It goes to L2, since shared memory leaves no room beside it.

    It takes as long as all of it at the rate of L2, or as a warp waits for its own.
    """
    spilled = case.sites / config.march * resources.spill_bytes
    moved_s = spilled / calibration.local_bytes_per_s["L2"]
    places = _LOADED * resources.spill_bytes / config.computed.bytes / _TOGETHER
    return _local(case, spilled, max(moved_s, places * calibration.l2_latency_s))


def _spilled_of_moments(
    case: Case, config: CudaConfig, machine: Machine, calibration: Calibration, resources: Resources, found: Step
) -> tuple[Term, float]:
    """As a term, and what a warp waits for it in a step. L1 has some of it, beside the shared memory of the blocks."""
    cells, passes = config.rows * config.cells_per_thread, config.march / planes_together(config)
    bytes_of_step = _IN_STEPS[config.held > 0] * resources.spill_bytes * (1 if config.held else passes)
    spilled = case.sites / (config.march * cells) * bytes_of_step
    near = left_in_l1(
        _cache_bytes(case, config, machine, calibration, found.blocks),
        found.blocks * warps_of(config) * WARP * resources.local_bytes,
    )
    rates_of = calibration.local_bytes_per_s
    moved_s = spilled * (near / rates_of["L1"] + (1 - near) / rates_of["L2"])
    places = _LOADED_OF_MOMENTS * bytes_of_step / config.computed.bytes / _TOGETHER_OF_MOMENTS
    answer_s = near * _NEAR_CYCLES * found.cycle_s + (1 - near) * calibration.l2_latency_s
    return _local(case, spilled, moved_s), places * answer_s


def _cache_bytes(case: Case, config: CudaConfig, machine: Machine, calibration: Calibration, blocks: int) -> int:
    """What the shared memory of the blocks leaves of L1."""
    limits = cuda_limits(machine.environment.architecture, machine.multiprocessors, 0)
    asked = shared_bytes(case.stencil, config)
    return left_of_l1(calibration.l1_bytes, blocks, asked, limits.shared_bytes_per_multiprocessor)


def _local(case: Case, spilled: float, seconds: float) -> Term:
    """spilled: bytes of a step, which take so long."""
    return Term(
        name=LOCAL,
        seconds=seconds / case.fluid_sites,
        sentence=f"{spilled / case.fluid_sites:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmarks `local`, `latency`",
    )


def step(case: Case, config: CudaConfig, machine: Machine) -> Step | None:
    """Of a domain on a machine; None where nobody has measured how long blocks take to meet."""
    tile = config.block_cells(case.stencil)
    tiles = prod(-(-n // of) for n, of in zip(case.domain, tile, strict=True))
    blocks = max(1, -(-tiles // max(1, machine.multiprocessors)))
    found = rates(machine, blocks * warps_of(config), meeting=True)
    clock_hz = machine.environment.max_sm_clock_hz
    if found is None or machine.calibration is None or not clock_hz:
        return None
    at_once = blocks * prod(tile) * machine.multiprocessors / WARP
    architecture = machine.environment.architecture
    if config.of_moments:
        needed, exchanged = _slots_of_moments(case, config, architecture), _words_of_moments(case, config)
    else:
        needed = _slots(case, config, architecture)
        exchanged = 2 * _values(case, config) * config.computed.bytes / _WORD_BYTES
    return Step(
        slots=needed,
        seconds=at_once * needed / found.issued,
        exchanges=exchanged,
        exchange_s=at_once * exchanged / found.exchanged,
        meeting_s=machine.calibration.meeting_s,
        blocks=blocks,
        cycle_s=1 / clock_hz,
        source=found.source,
    )


def _values(case: Case, config: CudaConfig) -> float:
    """Taken out of shared memory, or received, for an update; as many are put back, or sent."""
    return case.stencil.q + face_values(case.stencil, config)


def _slots(case: Case, config: CudaConfig, architecture: str) -> float:
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    moved = _values(case, config)
    converted = moved if config.stored.bytes < config.computed.bytes else 0
    return each * collision_slots(case.collision, case.lattice, case.forced) + 2 * (moved + converted)


def _slots_of_moments(case: Case, config: CudaConfig, architecture: str) -> float:
    """A stage of a march, and what is sent and received through faces."""
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    found, words = stage_of(case, config), config.computed.bytes // _WORD_BYTES
    values = config.kept.values(case.stencil)
    pieces = 2 * _in_shared_memory(config) * -(-values * config.stored.bytes // ACCESS_BYTES)
    converted = 2 * values if config.stored.bytes < config.computed.bytes else 0
    handed = 4 * -(-found.sums * config.computed.bytes // ACCESS_BYTES) / config.rows
    across = 2 * words * found.movers / config.cells_per_thread
    through_faces = (2 + each * _ADDED) * face_values(case.stencil, config)
    besides = _OF_COLUMN / config.march if case.stencil.dimensions == 3 else 0.0
    return each * found.arithmetic + pieces + converted + handed + across + through_faces + besides


def _words_of_moments(case: Case, config: CudaConfig) -> float:
    """To and from shared memory, and to other lanes."""
    found, words = stage_of(case, config), config.computed.bytes // _WORD_BYTES
    kept = config.kept.values(case.stencil) * config.stored.bytes / _WORD_BYTES
    along = 4 * words * found.sums / config.rows if case.stencil.dimensions == 3 else 0
    return 2 * _in_shared_memory(config) * kept + along + 2 * words * found.movers / config.cells_per_thread


def _in_shared_memory(config: CudaConfig) -> float:
    """Share of the planes."""
    return 1 - config.held / config.march


@lru_cache(maxsize=64)
def collision_slots(operator: str, name: str, forced: bool) -> int:
    """Instructions of a collision, as counted on the printed text."""
    return arithmetic(collide_function(operator, name, forced), ("unit", *collision_scalars(operator, name, forced)))
