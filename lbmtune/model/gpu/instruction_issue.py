"""What the issue of instructions allows a kernel of several steps per launch, whose bytes no longer bind it.

Instructions of a cell and time step are counted on the printed text; cells of halos, lanes beyond the domain, planes
before and after a chunk and multiprocessors without a block take part and are wasted (`Efficiency`). Multiprocessors
issue four instructions for 32 lanes each in a clock cycle, and exchange 32 words between lanes, or with shared memory:
how near they come to that is measured (`rates`).

Addresses, predicates and copies between registers are taken from compiled kernels (`_besides`). What walls add is in
`model.gpu.walls`.
Registers are estimated (`registers`); what does not fit is stored and loaded once per plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.config import CudaConfig, KernelConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    blocks,
    passed_planes,
    planes_together,
    rising,
    spared,
    waiting,
    waiting_words,
)
from lbmtune.catalogue.limits import MOST_REGISTERS, SCHEDULERS, WARP, registers_allowed
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared import moments
from lbmtune.codegen.cuda.shared.physics import collision_scalars
from lbmtune.codegen.cuda.temporal_blocking import populations
from lbmtune.codegen.moment_stages import Sums
from lbmtune.lattice import lattice
from lbmtune.model.gpu.occupancy import warps_of
from lbmtune.model.gpu.walls import evenness
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.description import ACCESS_BYTES, Machine
from lbmtune.model.machine.figures import numbered

_MULTIPLY_ADD, _APART = "multiply-add, ", 8
"""What was measured, and of how many instructions that do not wait for each other."""
_WORD_BYTES = 4
_MOST_THREADS = 1024
"""Of a multiprocessor, while each of them has registers enough for a march."""
_OTHER_REGISTERS = 44
"""Addresses and what is on its way; from kernels compiled for compute capability 9.0."""
_PLANE, _ACCESS, _ROW, _FLAGS, _COPY, _DIVISION = 27, 4.3, 5, 31, 0.59, 14
"""Instructions of a thread besides those counted: of a plane; of an access to memory, there and back; of a row in a
stage; of a plane whose warps wait for their neighbours; of a word that waits for the next plane, to bring it to the
register where a pass expects it; of a division of doubles, beside the first guess. From the loops of 172 kernels
compiled for compute capability 9.0: with them the count is within 2 % of what was compiled in half of the kernels, and
within 4 % in nine tenths."""
_LOCAL_SLOTS = 4
"""A multiprocessor moves 32 lanes to or from its caches in a cycle, in which it issues four instructions."""
_SLOTS_OF_DOUBLES = {"sm_35": 3, "sm_37": 3, **dict.fromkeys(("sm_60", "sm_70", "sm_80", "sm_90", "sm_100"), 2)}
_FEW_DOUBLES = 64
"""Units for single over those for double precision, by architecture; the others have 1/32 or fewer of them.

Source: CUDA C++ Programming Guide, throughput of arithmetic instructions.
"""


class Efficiency(NamedTuple):
    """Shares of what is computed that are not wasted: along each axis, and of the multiprocessors over all waves."""

    x: float
    y: float
    z: float
    wave: float
    fluid: float = 1.0

    @property
    def cells(self) -> float:
        """Of the cells: what instructions per update are more for. Solid cells are computed, and not counted."""
        return self.x * self.y * self.z * self.fluid


class Issue(NamedTuple):
    """slots: of an update, waste included, and the time that they take; exchanges: the same of what goes between the
    lanes of a warp and through shared memory; source: where the rates come from.

    useful: share of the cells that are computed, halos being the rest.
    """

    slots: float
    seconds: float
    exchanges: float
    exchange_s: float
    source: str
    useful: float


class Rates(NamedTuple):
    """Instructions of warps per second, of the whole device: all of them, and those that exchange words."""

    issued: float
    exchanged: float
    source: str


def rates(machine: Machine, warps: int, *, meeting: bool) -> Rates | None:
    """Of so many warps on each multiprocessor, that meet or not; None where the machine does not say what it has.

    Measured (`Calibration.instructions_per_s`), with eight instructions that do not wait for each other: those of the
    populations and sums of a cell do not. Where nobody has measured it, all slots, and a quarter of them for exchanges.
    Source: CUDA C++ Programming Guide, throughput of instructions.
    """
    clock_hz = machine.environment.max_sm_clock_hz
    if not clock_hz or not machine.multiprocessors:
        return None
    measured = machine.calibration.instructions_per_s if machine.calibration else {}
    if not measured:
        slots_per_s = machine.multiprocessors * SCHEDULERS * clock_hz
        return Rates(slots_per_s, slots_per_s / SCHEDULERS, "all issue slots, not measured")
    kind = f" warps of {_APART}" + (", meeting" if meeting else "")
    known = numbered(tuple(measured), _MULTIPLY_ADD, kind)
    nearest = min(known, key=lambda count: abs(count - warps))
    # fewer warps than that leave some of the schedulers without work
    issued = measured[known[nearest]] * min(1.0, warps / nearest)
    return Rates(issued, min(measured["shuffle"], measured["shared memory"]), "micro-benchmark `instructions`")


def issue(case: Case, config: CudaConfig, machine: Machine, known: int = 0, *, walls: bool = True) -> Issue | None:
    """The terms for kernels that march over tiles; None for others, and where the machine does not say what it has.

    known: blocks that share a multiprocessor, where registers are known; spills are then a term of their own; walls:
    whether what they add counts.
    """
    blocks_there = known or (together(case, config) if config.marches else 1)
    warps = blocks_there * warps_of(config)
    # while the warps of a block meet, those of others go on; with several steps that is a term of its own
    alone = case.stencil.dimensions == 3 and blocks_there == 1 and config.steps == 1
    found = rates(machine, warps, meeting=alone)
    if not config.marches or found is None:
        return None
    share = efficiency(case, config, machine.multiprocessors, known, walls=walls)
    needed = slots(case, config, machine.environment.architecture, spills=not known) / share.cells
    exchanged = exchanges(case, config) / share.cells
    return Issue(
        slots=needed,
        seconds=needed / WARP / found.issued / share.wave,
        exchanges=exchanged,
        exchange_s=exchanged / WARP / found.exchanged / share.wave,
        source=found.source,
        useful=share.cells,
    )


def efficiency(
    case: Case, config: CudaConfig, multiprocessors: int, known: int = 0, *, walls: bool = True
) -> Efficiency:
    """Of the tiles of a domain. Blocks march along the last axis; in two dimensions their warps lie side by side."""
    flat = case.stencil.dimensions == 2
    x, y, z = blocks(case, config)
    height, chunks = (case.domain[1], y) if flat else (case.domain[2], z)
    passed = [planes - spared(case, config) for planes in passed_planes(case, config)]
    marched = height / (chunks * passed[0] if config.chunks == "even" else sum(passed))
    warps, there = config.block[1], known or together(case, config)
    return Efficiency(
        x=case.domain[0] / (x * WARP * config.cells_per_thread * (warps if flat else 1)),
        y=marched if flat else case.domain[1] / (y * warps * config.rows),
        z=1.0 if flat else marched,
        wave=_wave(case, config, multiprocessors, there, passed, walls=walls),
        fluid=case.fluid_sites / case.sites,
    )


def cells_read(case: Case, config: KernelConfig) -> float:
    """Return the cells that a launch reads per cell that it updates: 1 without halos."""
    if config.family != "temporal-blocking":
        return 1.0
    assert isinstance(config, CudaConfig)
    return 1 / efficiency(case, config, 1).cells


def _wave(
    case: Case, config: CudaConfig, multiprocessors: int, there: int, passed: Sequence[int], *, walls: bool
) -> float:
    """Of the multiprocessors. there: blocks on each; passed: planes of a column's blocks."""
    if walls and cuts(case) and case.stencil.dimensions == 3:
        return evenness(case, config, multiprocessors, there)
    found, at_once = blocks(case, config), multiprocessors * there
    return _waves(prod(found), at_once) if config.chunks == "even" else _tail(prod(found[:2]) / at_once, passed)


def _waves(count: int, at_once: int) -> float:
    """Of blocks that take equally long."""
    return count / (-(-count // at_once) * at_once)


def _tail(columns: float, passed: Sequence[int]) -> float:
    """Of places whose last blocks are the shortest. columns: for each place; passed: planes of a column's blocks."""
    mean = columns * sum(passed)
    return mean / max(mean + passed[-1] / 2, passed[0])


def together(case: Case, config: CudaConfig) -> int:
    """Blocks that share a multiprocessor: as many as launch bounds ask for, or as there are registers for."""
    if config.min_blocks:
        return config.min_blocks
    threads, wanted = prod(config.block), min(registers(case, config), MOST_REGISTERS)
    return next((n for n in range(_MOST_THREADS // threads, 1, -1) if registers_allowed(n * threads) >= wanted), 1)


def slots(case: Case, config: CudaConfig, architecture: str, spills: bool = True) -> float:
    """Issue slots of one lane for one cell and time step, waste not included."""
    stage = stage_of(case, config)
    each = slots_of_doubles(architecture) if config.compute == "fp64" else 1
    words = config.computed.bytes // _WORD_BYTES
    shuffles = 2 * words * stage.movers / config.cells_per_thread
    # sums go up and down and are received by cells at the rim of a thread's rows
    exchanges = 4 * _accesses(stage.sums, words) / config.rows
    shelved = 2 * _accesses(rising(case, config), words) if config.pending == "shared" else 0
    in_launch = _moved(case, config) + (_spilled(case, config) if spills else 0)
    besides = _besides(case, config) / (config.cells_per_thread * config.rows)
    divided = each * _DIVISION if config.compute == "fp64" and case.relaxes else 0
    computed = each * stage.arithmetic + divided + _copied(case, config)
    return computed + shuffles + exchanges + shelved + (in_launch + besides) / config.steps


def exchanges(case: Case, config: CudaConfig) -> float:
    """Words of a cell and time step that go to another lane, and to and from shared memory and the cache beside it."""
    stage = stage_of(case, config)
    words = config.computed.bytes // _WORD_BYTES
    across = 2 * words * stage.movers / config.cells_per_thread
    along = 4 * words * stage.sums / config.rows if case.stencil.dimensions == 3 else 0.0
    shelved = 2 * words * rising(case, config) if config.pending == "shared" else 0
    # an access of less than a word takes as long as one of a word
    words_moved = config.kept.values(case.stencil) * config.stored.bytes / _WORD_BYTES
    moved = (4 if config.prefetch == 2 else 2) * max(words_moved, _accesses_of_a_cell(case, config))
    return across + along + shelved + (moved + _halves(case, config)) / config.steps


def _copied(case: Case, config: CudaConfig) -> float:
    """Of a cell in a stage, where what waits does so in registers; a pass that takes two planes needs no copies."""
    copies = config.pending == "registers" and planes_together(case, config) == 1
    return _COPY * (config.computed.bytes // _WORD_BYTES) * waiting(case, config) if copies else 0.0


def _besides(case: Case, config: CudaConfig) -> float:
    """Of a thread and plane: addresses, predicates, copies between registers, flags."""
    accesses = _accesses_of_a_cell(case, config) * config.cells_per_thread * config.rows
    flags = _FLAGS if config.barrier == "neighbours" else 0
    return _PLANE + _ACCESS * accesses + _ROW * config.rows * config.steps + flags


def _accesses(values: int, words: int) -> int:
    """To shared memory: four at a time where they are floats, and one by one what is left over."""
    return sum(divmod(values, 4)) if words == 1 else values


def registers(case: Case, config: CudaConfig) -> int:
    """What a thread would like to have, to within 20 % of what was compiled for compute capability 9.0.

    For each cell what waits in every stage and not in shared memory, its values, and with prefetch 1 those of the next
    plane.
    """
    words, cells = config.computed.bytes // _WORD_BYTES, config.cells_per_thread * config.rows
    count = config.kept.values(case.stencil)
    ahead = count * config.stored.bytes / _WORD_BYTES if config.prefetch == 1 else 0
    return round(_OTHER_REGISTERS + waiting_words(case, config) + cells * (words * count + ahead))


class Stage(NamedTuple):
    """Of relaxing, spreading, summing up and gathering a cell. movers: populations that go right, as many go left.

    sums: what a row hands on, up as well as down.
    """

    arithmetic: int
    movers: int
    sums: int


def stage_of(case: Case, config: CudaConfig) -> Stage:
    """Of a case."""
    if config.of_moments:
        return _stage(case.lattice, case.forced, case.relaxes)
    return _stage_of_populations(case.lattice, case.collision, case.forced)


@lru_cache(maxsize=64)
def _stage_of_populations(name: str, operator: str, forced: bool) -> Stage:
    """Collision is all that is computed."""
    stencil = upright(lattice(name))
    text, arguments = populations.relaxation(operator, name, forced), collision_scalars(operator, name, forced)
    along = [sum(c[axis] == 1 for c in stencil.velocities) for axis in range(3)]
    return Stage(arithmetic(text, ("unit", *arguments)), along[0], along[1])


@lru_cache(maxsize=64)
def _stage(name: str, forced: bool, relaxes: bool = True) -> Stage:
    stencil = lattice(name)
    text, arguments = moments.functions(stencil, forced, relaxes=relaxes), moments.scalars(stencil, forced, relaxes)
    counted = arithmetic(text, ("unit", *arguments))
    sums = Sums(upright(stencil))
    return Stage(counted, len(sums.movers), len(sums.along_y(1)))


def slots_of_doubles(architecture: str) -> int:
    """Issue slots of an instruction in double precision."""
    return _SLOTS_OF_DOUBLES.get(architecture.rstrip("af"), _FEW_DOUBLES)


def _moved(case: Case, config: CudaConfig) -> float:
    """Of a cell in a launch: loads and stores, the detour by shared memory, and conversions from and to 16 bits."""
    # two values that are stored side by side are converted at once
    each = 2 if config.pack * config.cells_per_thread == 1 else 1.5
    converted = each * config.kept.values(case.stencil) if config.stored.bytes < config.computed.bytes else 0
    return (3 if config.prefetch == 2 else 2) * _accesses_of_a_cell(case, config) + converted


def _accesses_of_a_cell(case: Case, config: CudaConfig) -> float:
    """Loads of the values of a cell, of which a lane takes those of its cells at once: as many stores."""
    return sum(-(-lane // ACCESS_BYTES) for lane in _lane_bytes(case, config)) / config.cells_per_thread


def _lane_bytes(case: Case, config: CudaConfig) -> list[int]:
    """What a lane has of its cells that lies together, of each group of values."""
    count = config.kept.values(case.stencil)
    groups = [config.pack] * (count // config.pack) + [count % config.pack] * bool(count % config.pack)
    return [group * config.cells_per_thread * config.stored.bytes for group in groups]


def _halves(case: Case, config: CudaConfig) -> float:
    """Words of a cell whose stores leave half of each sector to the next one, and take as long as if they filled it.

    Those of lanes that have more together than an access. What such a load leaves of a sector L1 has for the next.
    """
    halved = sum(lane for lane in _lane_bytes(case, config) if lane > ACCESS_BYTES)
    return halved / config.cells_per_thread / _WORD_BYTES


def _spilled(case: Case, config: CudaConfig) -> float:
    """Of a cell in a launch: what a thread has no registers for goes to local memory and comes back once per plane."""
    allowed = config.max_registers or registers_allowed(prod(config.block) * max(1, config.min_blocks))
    return 2 * _LOCAL_SLOTS * max(0, registers(case, config) - allowed) / (config.cells_per_thread * config.rows)
