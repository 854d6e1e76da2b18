"""Instruction issue of temporal blocking, whose bytes no longer bind it.

Instructions of a cell and time step are counted on the printed text. Cells of halos, lanes beyond the domain, planes
before and after a chunk and idle multiprocessors are wasted (`Efficiency`). Multiprocessors issue four instructions for
32 lanes each in a clock cycle, and exchange 32 words between lanes or with shared memory; how near they come to that is
measured (`model.gpu.terms.instructions.rates`).

Addresses, predicates and copies between registers are taken from compiled kernels (`_besides`). What walls add is in
`walls`. Registers are estimated (`registers`); what does not fit of those that are needed (`needed_registers`) is
stored and loaded once per plane.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.temporal_blocking import (
    TemporalBlocking,
    planes_together,
    rising,
    waiting,
    waiting_words,
)
from lbmtune.catalogue.limits import MOST_REGISTERS, WARP, registers_allowed
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.physics import collision_scalars
from lbmtune.codegen.cuda.temporal_blocking import populations
from lbmtune.lattice import lattice
from lbmtune.model.gpu.inputs import warps_of
from lbmtune.model.gpu.temporal_blocking.inputs import column, useful_planes
from lbmtune.model.gpu.temporal_blocking.walls import evenness
from lbmtune.model.gpu.terms.instructions import Issue, Stage, moments_stage, precision_slots, rates
from lbmtune.model.gpu.terms.spills import allowed_registers
from lbmtune.model.instructions import arithmetic
from lbmtune.model.machine.description import ACCESS_BYTES, WORD_BYTES, Machine

_MOST_THREADS = 1024
"""Resident threads of a multiprocessor if each has registers enough for temporal blocking."""
_OTHER_REGISTERS = 44
"""Registers of addresses and loads in flight; from kernels compiled for compute capability 9.0."""
_LEAST, _LINKS, _NEIGHBOURS, _WAITING, _VALUE = 7, 11, 8, 1.15, 1.75
"""Registers that a thread needs at least besides those of its cells, if links can be cut more, for the flags of warps
that wait for their neighbours, of a word of the z buffer, and of a word of a cell, since a stage reads some while it
writes others. From 8,121 kernels compiled for compute capability 9.0, of which 95.5 % spill if and only if these
exceed their limit."""
_SHELVED, _SHELVED_LINKS = -5, 8
"""Registers that a z buffer in shared memory adds to those, and if links can be cut, since each stage then keeps the
places of what waits. From the same kernels."""
_PLANE, _ACCESS, _ROW, _FLAGS, _COPY, _DIVISION = 27, 4.3, 5, 31, 0.59, 14
"""Instructions of a thread besides those counted on the text: of a plane; of an access to memory, both ways; of a row
in a stage; of a plane whose warps wait for their neighbours; of a word of the z buffer, to copy it to the register
where a pass expects it; of a division of doubles besides the first guess. From the loops of 172 kernels compiled for
compute capability 9.0: the count is within 2 % of what was compiled for half of them, within 4 % for nine tenths."""
_LOCAL_SLOTS = 4
"""A multiprocessor moves 32 lanes to or from its caches in a cycle, in which it issues four instructions."""


class Efficiency(NamedTuple):
    """Shares of the computed cells that are useful: along each axis, and of the multiprocessors over all waves."""

    x: float
    y: float
    z: float
    wave: float
    fluid: float = 1.0

    @property
    def cells(self) -> float:
        """Return the share of the computed cells that are updates. Solid cells are computed, and do not count."""
        return self.x * self.y * self.z * self.fluid


def issue(
    case: Case, config: TemporalBlocking, machine: Machine, known: int = 0, *, walls: bool = True, launched: int = 0
) -> Issue | None:
    """Return the issue of an update; None if the description of the machine lacks its rates.

    known: blocks that share a multiprocessor, if registers are known: spills are then a term of their own; walls: count
    what walls add; launched: blocks of a part of the launch; 0: all.
    """
    blocks_there = known or together(case, config)
    warps = blocks_there * warps_of(prod(config.block))
    # while the warps of a block synchronise, other blocks go on; with several steps that is a term of its own
    alone = case.stencil.dimensions == 3 and blocks_there == 1 and config.steps == 1
    found = rates(machine, warps, meeting=alone)
    if found is None:
        return None
    share = efficiency(case, config, machine.multiprocessors, known, walls=walls, launched=launched)
    needed = slots(case, config, precision_slots(config, machine), spills=not known) / share.cells
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
    case: Case, config: TemporalBlocking, multiprocessors: int, known: int = 0, *, walls: bool = True, launched: int = 0
) -> Efficiency:
    """Return the efficiency of tiles. Blocks go along the last axis; in two dimensions their warps lie side by side."""
    flat, passed = case.stencil.dimensions == 2, useful_planes(case, config)
    (x, y, _), (height, taken) = config.blocks(case), column(case, config, passed)
    warps, there = config.block[1], known or together(case, config)
    return Efficiency(
        x=case.domain[0] / (x * WARP * config.cells_per_thread * (warps if flat else 1)),
        y=height / taken if flat else case.domain[1] / (y * warps * config.rows),
        z=1.0 if flat else height / taken,
        wave=_wave(case, config, multiprocessors, there, passed, walls=walls, launched=launched),
        fluid=case.fluid_sites / case.sites,
    )


def _wave(
    case: Case,
    config: TemporalBlocking,
    multiprocessors: int,
    there: int,
    passed: Sequence[int],
    *,
    walls: bool,
    launched: int,
) -> float:
    """Return the share of multiprocessors at work. there: blocks on each; passed: planes of a column's blocks."""
    if walls and cuts(case) and case.stencil.dimensions == 3:
        return evenness(case, config, multiprocessors, there)
    found, at_once = config.blocks(case), multiprocessors * there
    if config.chunk_schedule == "uniform":
        blocks = launched or prod(found)
        return blocks / (-(-blocks // at_once) * at_once)
    # the last blocks are shortest
    mean = prod(found[:2]) / at_once * sum(passed)
    return mean / max(mean + passed[-1] / 2, passed[0])


def together(case: Case, config: TemporalBlocking) -> int:
    """Return the blocks that share a multiprocessor: by launch bounds, or by registers."""
    if config.min_blocks:
        return config.min_blocks
    threads, wanted = prod(config.block), min(registers(case, config), MOST_REGISTERS)
    return next((n for n in range(_MOST_THREADS // threads, 1, -1) if registers_allowed(n * threads) >= wanted), 1)


def slots(case: Case, config: TemporalBlocking, each: int, spills: bool = True) -> float:
    """Return the issue slots of one lane for one cell and step, without waste. each: of an arithmetic instruction."""
    stage = stage_of(case, config)
    words = config.computed.bytes // WORD_BYTES
    shuffles = 2 * words * stage.movers / config.cells_per_thread
    # sums go up and down, and cells at the rim of the rows of a thread receive them
    exchanges = 4 * _accesses(stage.sums, words) / config.rows
    shelved = 2 * _accesses(rising(case, config), words) if config.z_buffer == "shared" else 0
    in_launch = _moved(case, config) + (_spilled(case, config) if spills else 0)
    besides = _besides(case, config) / (config.cells_per_thread * config.rows)
    divided = each * _DIVISION if config.compute == "fp64" and case.relaxes else 0
    computed = each * stage.arithmetic + divided + _copied(case, config)
    return computed + shuffles + exchanges + shelved + (in_launch + besides) / config.steps


def exchanges(case: Case, config: TemporalBlocking) -> float:
    """Return the words of a cell and time step to other lanes, and to and from shared memory and L1."""
    stage = stage_of(case, config)
    words = config.computed.bytes // WORD_BYTES
    across = 2 * words * stage.movers / config.cells_per_thread
    along = 4 * words * stage.sums / config.rows if case.stencil.dimensions == 3 else 0.0
    shelved = 2 * words * rising(case, config) if config.z_buffer == "shared" else 0
    # an access of less than a word takes as long as one of a word
    words_moved = config.kept.values(case.stencil) * config.stored.bytes / WORD_BYTES
    moved = (4 if config.plane_fetch == "cp_async" else 2) * max(words_moved, _accesses_of_a_cell(case, config))
    return across + along + shelved + (moved + _halves(case, config)) / config.steps


def _copied(case: Case, config: TemporalBlocking) -> float:
    """Return the copies of a cell in a stage if the z buffer is in registers; a pass of two planes needs none."""
    copies = config.z_buffer == "registers" and planes_together(case, config) == 1
    return _COPY * (config.computed.bytes // WORD_BYTES) * waiting(case, config) if copies else 0.0


def _besides(case: Case, config: TemporalBlocking) -> float:
    """Return the instructions of a thread and plane: addresses, predicates, copies between registers, flags."""
    accesses = _accesses_of_a_cell(case, config) * config.cells_per_thread * config.rows
    flags = _FLAGS if config.warp_sync == "neighbours" else 0
    return _PLANE + _ACCESS * accesses + _ROW * config.rows * config.steps + flags


def _accesses(values: int, words: int) -> int:
    """Return accesses to shared memory: four floats at a time, and the rest one by one."""
    return sum(divmod(values, 4)) if words == 1 else values


def registers(case: Case, config: TemporalBlocking) -> int:
    """Estimate the registers that a thread would use, within 20 % of what was compiled for compute capability 9.0.

    For each cell: the z buffer of every stage unless it is in shared memory, its values, and those of the next plane if
    it is fetched into registers.
    """
    words, cells = config.computed.bytes // WORD_BYTES, config.cells_per_thread * config.rows
    count = config.kept.values(case.stencil)
    ahead = count * config.stored.bytes / WORD_BYTES if config.plane_fetch == "registers" else 0
    return round(_OTHER_REGISTERS + waiting_words(case, config) + cells * (words * count + ahead))


def needed_registers(case: Case, config: TemporalBlocking) -> int:
    """Estimate the registers of a thread below which it spills; a compiler that has more of them uses more."""
    words, cells = config.computed.bytes // WORD_BYTES, config.cells_per_thread * config.rows
    count = config.kept.values(case.stencil)
    ahead = count * config.stored.bytes / WORD_BYTES if config.plane_fetch == "registers" else 0
    links, shelved = cuts(case), config.z_buffer == "shared"
    others = _LEAST + (_LINKS if links else 0) + (_NEIGHBOURS if config.warp_sync == "neighbours" else 0)
    others += (_SHELVED_LINKS if links else _SHELVED) if shelved else 0
    return round(others + _WAITING * waiting_words(case, config) + cells * (_VALUE * words * count + ahead))


def stage_of(case: Case, config: TemporalBlocking) -> Stage:
    """Return the instructions of a cell in a stage."""
    if config.of_moments:
        return moments_stage(case)
    return _stage_of_populations(case.lattice, case.collision, case.forced)


@lru_cache(maxsize=64)
def _stage_of_populations(name: str, operator: str, forced: bool) -> Stage:
    """Count the collision alone."""
    stencil = upright(lattice(name))
    text, arguments = populations.relaxation(operator, name, forced), collision_scalars(operator, name, forced)
    along = [sum(c[axis] == 1 for c in stencil.velocities) for axis in range(3)]
    return Stage(arithmetic(text, ("unit", *arguments)), along[0], along[1])


def _moved(case: Case, config: TemporalBlocking) -> float:
    """Return the instructions of a cell in a launch: loads, stores, copies to shared memory, 16-bit conversions."""
    # two adjacent values are converted at once
    each = 2 if config.pack * config.cells_per_thread == 1 else 1.5
    converted = each * config.kept.values(case.stencil) if config.stored.bytes < config.computed.bytes else 0
    return (3 if config.plane_fetch == "cp_async" else 2) * _accesses_of_a_cell(case, config) + converted


def _accesses_of_a_cell(case: Case, config: TemporalBlocking) -> float:
    """Return the loads of the values of a cell, and as many stores; a lane takes those of its cells at once."""
    return sum(-(-lane // ACCESS_BYTES) for lane in _lane_bytes(case, config)) / config.cells_per_thread


def _lane_bytes(case: Case, config: TemporalBlocking) -> list[int]:
    """Return the contiguous bytes of a lane for each group of values."""
    count = config.kept.values(case.stencil)
    groups = [config.pack] * (count // config.pack) + [count % config.pack] * bool(count % config.pack)
    return [group * config.cells_per_thread * config.stored.bytes for group in groups]


def _halves(case: Case, config: TemporalBlocking) -> float:
    """Return the words of a cell whose stores fill half of each sector and take as long as if they filled it.

    Those of lanes with more contiguous bytes than an access. L1 keeps the rest of a loaded sector for the next load.
    """
    halved = sum(lane for lane in _lane_bytes(case, config) if lane > ACCESS_BYTES)
    return halved / config.cells_per_thread / WORD_BYTES


def _spilled(case: Case, config: TemporalBlocking) -> float:
    """Return the instructions of a cell in a launch for spills, which are stored and loaded once per plane."""
    allowed = allowed_registers(config, prod(config.block))
    return 2 * _LOCAL_SLOTS * max(0, needed_registers(case, config) - allowed) / (config.cells_per_thread * config.rows)
