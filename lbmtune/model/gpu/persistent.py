"""Kernels that keep populations or moments on chip: blocks synchronise in every step, and compute in between.

Instructions are counted as for temporal blocking: the collision on the printed text, and one for each value that is
taken out of shared memory, put back, sent and received; for moments a stage, and pieces of 16 bytes. Addresses are not
counted.

With populations a block reads its own tile while it waits for the others, and what crosses faces after that. With
moments a warp goes up its column plane by plane and waits for its loads, while the others of its scheduler go on
(`model.gpu.terms.mva`).
"""

from collections.abc import Collection
from dataclasses import replace
from math import prod
from typing import NamedTuple

from lbmtune.catalogue.families.cuda.persistent import Persistent, face_values, planes_together
from lbmtune.catalogue.limits import SCHEDULERS, WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.families import Family, traffic_alone
from lbmtune.model.gpu.inputs import Inputs, left_of_l1, warps_of
from lbmtune.model.gpu.terms.instructions import Issue, collision_slots, moments_stage, precision_slots, rates
from lbmtune.model.gpu.terms.mva import shares
from lbmtune.model.gpu.terms.spills import estimated_by_registers, left_in_l1
from lbmtune.model.machine.description import ACCESS_BYTES, WORD_BYTES, Calibration, Machine
from lbmtune.records import Resources, Term
from lbmtune.records.terms import GRID_SYNC, LATENCY, LOCAL

_ADDED = 2
"""Additions for a value from another tile, as in D3Q19, in which 12 populations are in 5 sums."""
_LOADED, _TOGETHER = 0.47, 7
"""Share of the spilled bytes of populations that is loaded, and loads that stand together before one of them is used;
from three kernels compiled for compute capability 9.0."""
_LOADED_OF_MOMENTS, _TOGETHER_OF_MOMENTS = 0.49, 4
"""The same of moments; medians of 52 kernels."""
_PER_VALUE, _PER_PLANE, _MOST_PLANES, _PER_VALUE_HELD, _PER_PLANE_HELD = 2.8, 1.0, 3, 5.2, 0.85
"""Registers of a kernel of moments for each moment of each cell that a thread has in a plane, and for each plane of the
tile, up to three; if registers keep planes, and for each of these.

From 65 kernels that spill, compiled for compute capability 9.0: half of them within 5 %, nine tenths within 12 %."""
_TIMES_SPILLED = {False: 5, True: 8}
"""How often a spilled word is stored or loaded; if registers keep planes, all passes are unrolled."""
_OF_COLUMN = 100
"""Instructions of a column besides those counted, for each cell that a thread has in a plane: exchange with the tiles
above and below, addresses of faces.

Loops over one, two and three planes of two cells have 714, 1138 and 1566 instructions: 288 independent of planes, of
which 80 are counted."""
_IN_STEPS = {True: 0.66, False: 0.87}
"""Share of the spill code of moments in the loop over steps: if registers keep planes, so that all passes over a tile
are unrolled, and if one pass is printed; medians of 28 and of 24 kernels. The rest begins and ends a launch."""
_STALLED = 0.87
"""Stall cycles of an instruction besides its own, by the control codes of 28 loops without spills (0.71 to 1.03)."""
_NEAR, _NEAR_OF_CELL = 2.0, 1.5
"""Places at which a warp waits for shared memory or another lane: of a plane, and of each cell that a thread has in it;
from the same loops (5 of two cells, 7.3 of three, 9.5 of five)."""
_NEAR_CYCLES = 29
"""Cycles of such a place: the latency of shared memory.

Source: Luo et al. 2024, Benchmarking and dissecting the Nvidia Hopper GPU architecture (arXiv:2402.13499)."""
_SYNCHRONISED = {"all": "all blocks", "neighbours": "neighbours, taken as all blocks, which were measured"}
"""Blocks that a block waits for."""
_ARRIVAL_S = 2.2e-9
"""Seconds that each block beyond one per multiprocessor, which were measured, takes to arrive at the counter of all.

From kernels of moments on an H200 that differ in `grid_sync` alone: 0.28 us of 256 blocks, 0.49 of 352, 0.96 of 512."""
_FAR, _FAR_OF_COLUMN = 1, 2
"""Places at which a warp waits for L2: of a plane, for values along y, and of a column, for those from above and
below."""


class Step(NamedTuple):
    """Instructions and exchanges of a step.

    blocks: those that share a multiprocessor; cells: of as many on all of them; cycle_s: of their clock.
    """

    issue: Issue
    blocks: int
    cells: int
    cycle_s: float


def estimated(case: Case, config: Persistent) -> Resources:
    """Estimate the resources of a kernel that was not compiled; populations are taken not to spill."""
    wanted, held = 0, config.register_planes if config.of_moments else 0
    if config.of_moments:
        each = _PER_VALUE + _PER_PLANE * min(config.tile_planes, _MOST_PLANES)
        if held:
            each = _PER_VALUE_HELD + _PER_PLANE_HELD * held
        words = config.kept.values(case.stencil) * config.computed.bytes // WORD_BYTES
        wanted = round(each * words * config.cells_per_thread * config.rows)
    return estimated_by_registers(case, config, wanted, prod(config.block), within=1, times=_TIMES_SPILLED[held > 0])


class PersistentInputs(Inputs):
    """A kernel that keeps the state on chip."""

    config: Persistent


def terms(inputs: PersistentInputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a step; none if the clock of the machine is unknown. What blocks send stays in the caches."""
    config, found = inputs.config, step(inputs.case, inputs.config, inputs.machine)
    if found is None:
        return []
    if not config.of_moments:
        synchronised, *result = _of_populations(inputs, found)
        result = [one for one in result if one.name not in without]
        return result if GRID_SYNC in without else [synchronised, *result]
    local, answers_s = _spilled_of_moments(inputs, found)
    result = [one for one in (*found.issue.terms("in shared memory"), local) if one.name not in without]
    waits_s = 0.0 if LATENCY in without else _waits_s(config, inputs.calibration, found)
    waits_s += 0.0 if LOCAL in without else answers_s
    result = _overlapped(inputs, result, waits_s, found.blocks)
    return result if GRID_SYNC in without else [_synchronisation(inputs), *result]


def _of_populations(inputs: PersistentInputs, found: Step) -> list[Term]:
    """Return the terms of populations, that of the synchronisation first.

    A block reads its tile while it waits for the others, then what crosses faces from L2, at the rate that its
    multiprocessor has a share of. Its warps store while others still collide, unless they signal neighbours in between.
    """
    case, config = inputs.case, inputs.config
    issued, exchanged = found.issue.terms("in shared memory and through faces")
    way_s = exchanged.seconds * case.stencil.q / _values(case, config) / 2
    received = face_values(case.stencil, config) * config.stored.bytes * found.cells / case.fluid_sites
    received_s = received / inputs.calibration.local_bytes_per_s["L2"]
    customers = 1 if config.grid_sync == "neighbours" else _warps(inputs, found.blocks)
    (issue_s, store_s), _ = shares([issued.seconds, way_s], 0.0, customers)
    return [
        _synchronisation(inputs, way_s),
        replace(issued, seconds=issue_s),
        replace(exchanged, seconds=store_s + received_s),
        _spilled_of_populations(inputs),
    ]


def _synchronisation(inputs: PersistentInputs, meanwhile_s: float = 0.0) -> Term:
    """Return the term of a synchronisation. meanwhile_s: of an update, that a block spends otherwise meanwhile."""
    each_s = max(inputs.calibration.meeting_s, meanwhile_s * inputs.case.fluid_sites)
    if inputs.config.grid_sync == "all":
        each_s += _ARRIVAL_S * max(0, inputs.launched_blocks - inputs.machine.multiprocessors)
    sentence = f"synchronisation of {_SYNCHRONISED[inputs.config.grid_sync]}, {each_s * 1e6:.3g} us per step"
    return Term(GRID_SYNC, each_s / inputs.case.fluid_sites, sentence, "micro-benchmark `meeting`")


def _warps(inputs: PersistentInputs, blocks: int) -> int:
    """Return the warps of a scheduler. blocks: those that share a multiprocessor."""
    return max(1, -(-blocks * inputs.block_warps // SCHEDULERS))


def _overlapped(inputs: PersistentInputs, stations: list[Term], waits_s: float, blocks: int) -> list[Term]:
    """Return terms of warps of a scheduler that overlap. waits_s: of a warp in a step, independent of others."""
    warps = _warps(inputs, blocks)
    alone_s = waits_s / inputs.case.fluid_sites
    found = shares([one.seconds for one in stations], warps * alone_s, warps)
    sentence = f"{waits_s * 1e6:.2g} us of waits of a warp per step, beside {warps - 1} others of its scheduler"
    latency = Term(LATENCY, found.delay, sentence, "compiled code; micro-benchmark `latency`")
    taken = [replace(one, seconds=seconds) for one, seconds in zip(stations, found.stations, strict=True)]
    return [*taken, latency]


def _waits_s(config: Persistent, calibration: Calibration, found: Step) -> float:
    """Return the waits of a warp in a step: after instructions, for shared memory, other lanes and other tiles."""
    cells = config.rows * config.cells_per_thread
    plane_cycles = _STALLED * found.issue.slots * cells + _NEAR_CYCLES * (_NEAR + _NEAR_OF_CELL * cells)
    answers = _FAR * config.tile_planes + _FAR_OF_COLUMN
    return float(config.tile_planes * plane_cycles * found.cycle_s + answers * calibration.l2_latency_s)


def _spilled_of_populations(inputs: PersistentInputs) -> Term:
    """Return the time of spills to L2, since shared memory takes all of L1: of all bytes, or of the waits of a warp."""
    config, found, spill_bytes = inputs.config, inputs.calibration, inputs.resources.spill_bytes
    spilled = inputs.case.sites / config.tile_planes * spill_bytes
    moved_s = spilled / found.local_bytes_per_s["L2"]
    places = _LOADED * spill_bytes / config.computed.bytes / _TOGETHER
    return _local(inputs.case, spilled, max(moved_s, places * found.l2_latency_s))


def _spilled_of_moments(inputs: PersistentInputs, found: Step) -> tuple[Term, float]:
    """Return the term of spills, and the waits of a warp for them in a step. L1 holds some beside shared memory."""
    case, config, calibration = inputs.case, inputs.config, inputs.calibration
    cells, passes = config.rows * config.cells_per_thread, config.tile_planes / planes_together(config)
    held = config.register_planes > 0
    bytes_of_step = _IN_STEPS[held] * inputs.resources.spill_bytes * (1 if held else passes)
    spilled = case.sites / (config.tile_planes * cells) * bytes_of_step
    asked = config.shared_bytes(case)
    near = left_in_l1(
        left_of_l1(calibration.l1_bytes, found.blocks, asked, inputs.shared_limit_bytes),
        found.blocks * inputs.block_warps * WARP * inputs.resources.local_bytes,
    )
    rates_of = calibration.local_bytes_per_s
    moved_s = spilled * (near / rates_of["L1"] + (1 - near) / rates_of["L2"])
    places = _LOADED_OF_MOMENTS * bytes_of_step / config.computed.bytes / _TOGETHER_OF_MOMENTS
    answer_s = near * _NEAR_CYCLES * found.cycle_s + (1 - near) * calibration.l2_latency_s
    return _local(case, spilled, moved_s), places * answer_s


def _local(case: Case, spilled: float, seconds: float) -> Term:
    """Return the term of spills. spilled: bytes of a step; seconds: their time."""
    sentence = f"{spilled / case.fluid_sites:.3g} bytes of spilled registers per update"
    return Term(LOCAL, seconds / case.fluid_sites, sentence, "compiled code; micro-benchmarks `local`, `latency`")


def step(case: Case, config: Persistent, machine: Machine) -> Step | None:
    """Return a step of a domain on a machine; None if synchronisation or the issue rates were not measured."""
    tile = config.block_cells(case.stencil)
    tiles = prod(-(-n // of) for n, of in zip(case.domain, tile, strict=True))
    blocks = max(1, -(-tiles // max(1, machine.multiprocessors)))
    found = rates(machine, blocks * warps_of(prod(config.block)), meeting=True)
    clock_hz = machine.environment.max_sm_clock_hz
    if found is None or machine.calibration is None or not clock_hz:
        return None
    cells = blocks * prod(tile) * machine.multiprocessors
    at_once = cells / WARP
    each = precision_slots(config, machine)
    if config.of_moments:
        needed, exchanged = _slots_of_moments(case, config, each), _words_of_moments(case, config)
    else:
        needed = _slots(case, config, each)
        exchanged = 2 * _values(case, config) * config.computed.bytes / WORD_BYTES
    issued = Issue(
        slots=needed,
        seconds=at_once * needed / found.issued / case.fluid_sites,
        exchanges=exchanged,
        exchange_s=at_once * exchanged / found.exchanged / case.fluid_sites,
        source=found.source,
    )
    return Step(issued, blocks, cells, 1 / clock_hz)


def _values(case: Case, config: Persistent) -> float:
    """Return the values of an update from shared memory or other tiles; as many are put back or sent."""
    return case.stencil.q + face_values(case.stencil, config)


def _slots(case: Case, config: Persistent, each: int) -> float:
    moved = _values(case, config)
    converted = moved if config.stored.bytes < config.computed.bytes else 0
    return each * collision_slots(case.collision, case.lattice, case.forced) + 2 * (moved + converted)


def _slots_of_moments(case: Case, config: Persistent, each: int) -> float:
    """Return the slots of a stage, and of what is sent and received through faces."""
    found, words = moments_stage(case), config.computed.bytes // WORD_BYTES
    values = config.kept.values(case.stencil)
    pieces = 2 * _in_shared_memory(config) * -(-values * config.stored.bytes // ACCESS_BYTES)
    converted = 2 * values if config.stored.bytes < config.computed.bytes else 0
    handed = 4 * -(-found.sums * config.computed.bytes // ACCESS_BYTES) / config.rows
    across = 2 * words * found.movers / config.cells_per_thread
    through_faces = (2 + each * _ADDED) * face_values(case.stencil, config)
    besides = _OF_COLUMN / config.tile_planes if case.stencil.dimensions == 3 else 0.0
    return each * found.arithmetic + pieces + converted + handed + across + through_faces + besides


def _words_of_moments(case: Case, config: Persistent) -> float:
    """Return the words of an update to and from shared memory, and to other lanes."""
    found, words = moments_stage(case), config.computed.bytes // WORD_BYTES
    kept = config.kept.values(case.stencil) * config.stored.bytes / WORD_BYTES
    along = 4 * words * found.sums / config.rows if case.stencil.dimensions == 3 else 0
    return 2 * _in_shared_memory(config) * kept + along + 2 * words * found.movers / config.cells_per_thread


def _in_shared_memory(config: Persistent) -> float:
    return float(1 - config.register_planes / config.tile_planes)


MODEL = Family(PersistentInputs, terms, estimated, traffic_alone, streams=False)
