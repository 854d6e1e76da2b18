"""Terms of temporal blocking: tiles with a halo that go up along z, of moments, or several steps per launch."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.families import Family
from lbmtune.model.gpu.temporal_blocking import spills
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs, column, passed_planes
from lbmtune.model.gpu.temporal_blocking.instruction_issue import (
    efficiency,
    issue,
    needed_registers,
    registers,
    together,
)
from lbmtune.model.gpu.temporal_blocking.overlap import overlapped, planes_wait, stages
from lbmtune.model.gpu.terms.concurrency import rate_in_use
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.fixed_costs import launch, launch_curve
from lbmtune.model.gpu.terms.instructions import Issue
from lbmtune.model.gpu.terms.spills import estimated_by_registers
from lbmtune.model.machine.curves import interpolated, retained_in_l2
from lbmtune.model.machine.description import WORD_BYTES, Machine
from lbmtune.model.roofline import memory_term
from lbmtune.records import Resources, Term
from lbmtune.records import terms as names

_SPREAD = ("8", "12", "16")
"""Warps of the blocks whose stages were measured."""
_TO_MEET = 16
"""Instructions of a warp in a stage that waits for its neighbours, which are counted with all others."""


def estimated(case: Case, config: TemporalBlocking) -> Resources:
    """Estimate the resources of a kernel that was not compiled."""
    wanted, needed = registers(case, config), needed_registers(case, config)
    return estimated_by_registers(case, config, wanted, prod(config.block), less=wanted - needed, within=1)


def terms(inputs: TemporalInputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a calibrated machine: of the parts of a launch, one after the other."""
    parts = inputs.parts
    shares, found = [part.share for part in parts], [_terms_of(part, without) for part in parts]
    return [_joined(shares, same) for same in zip(*found, strict=True)]


def plane_s(inputs: TemporalInputs, blocks: int) -> float:
    """Return the seconds in which each of some blocks that run at once goes on by a plane, walls left out.

    blocks: those of one wave, or fewer, which wait less for each other.
    """
    even = replace(inputs.config, chunk_schedule="uniform")
    few = replace(inputs, config=even, part=blocks)
    each = sum(one.seconds for one in _terms_of(few, (names.LAUNCH, names.WALLS)))
    return each * few.updates * even.steps / few.planes


def _joined(shares: Sequence[float], same: Sequence[Term]) -> Term:
    """Return a term of all parts of a launch, in words that of the first. shares: of the updates."""
    seconds = sum(share * one.seconds for share, one in zip(shares, same, strict=True))
    alone_s = sum(share * (one.alone_s or 0.0) for share, one in zip(shares, same, strict=True))
    return replace(same[0], seconds=seconds, alone_s=alone_s or None)


def _terms_of(inputs: TemporalInputs, without: Collection[str]) -> list[Term]:
    case, config, there = inputs.case, inputs.config, inputs.blocks
    walls = names.WALLS not in without
    found = issue(case, config, inputs.machine, there, walls=walls, launched=inputs.launched_blocks)
    start, cached = (None, 1.0) if names.LAUNCH in without else launch_start(inputs)
    memory = _memory(inputs, without)
    memory = replace(memory, seconds=cached * memory.seconds)
    computed = [one for one in (_issued(found) if found else ()) if one.name not in without]
    waits = [] if names.LATENCY in without else [planes_wait(inputs)]
    stages_s = 0.0 if names.STAGES in without else stages_wait(inputs)
    result = overlapped(case, config, memory, computed, waits, there, stages_s)

    def staged_s(alone_s: float, *more: float) -> float:
        parts = [*(one.seconds for one in computed), *more]
        return stages(case, config, parts, there, stages_s, alone_s)[0].total

    if names.LOCAL not in without:
        result.append(spills.local_memory(inputs, staged_s, found.useful if found else 1.0))
    hazards = None if names.SPILL_HAZARDS in without else spills.hazard_stalls(inputs, inputs.turns)
    if hazards:
        waited = 0.0 if names.LOCAL in without else spills.alone_s(inputs)
        result.append(spills.behind_waits(inputs, hazards, staged_s, waited))
    return [*result, start] if start else result


def _issued(found: Issue) -> list[Term]:
    return found.terms("between lanes and in shared memory", ", halos included")


def cells_read(case: Case, config: TemporalBlocking) -> float:
    """Return the cells that a launch reads per cell that it updates, halos included."""
    return 1 / efficiency(case, config, 1).cells


def _memory(inputs: TemporalInputs, without: Collection[str]) -> Term:
    rate = rate_in_use(inputs, bandwidth(inputs, by_runs=names.RUNS not in without), without)
    case, config, machine = inputs.case, inputs.config, inputs.machine
    at_once = inputs.blocks * machine.multiprocessors
    moved = traffic(case, config).total if names.L2_REFETCH in without else memory_bytes(case, config, machine, at_once)
    return memory_term(moved, rate, "micro-benchmarks")


def memory_bytes(case: Case, config: TemporalBlocking, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update that memory moves. at_once: concurrent blocks; 0: one per multiprocessor."""
    return traffic(case, config).total + refetched_plane_bytes(case, config, machine, at_once)


def refetched_plane_bytes(case: Case, config: TemporalBlocking, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update of the planes before and after each chunk, which belong to other blocks.

    When the next block of a column begins with them, all that the device moves meanwhile has gone through the cache.
    """
    moved, (height, taken) = traffic(case, config), column(case, config, passed_planes(case, config))
    launch_bytes = moved.total * config.steps * case.sites
    between = launch_bytes * min(1.0, (at_once or machine.multiprocessors) / prod(config.blocks(case)))
    return moved.populations / 2 * (taken / height - 1) * (1 - retained_in_l2(machine, between))


def uncalibrated_terms(case: Case, config: TemporalBlocking, machine: Machine, memory: Term) -> list[Term]:
    """Return bytes, and the issue of instructions at the rates of the architecture."""
    found = issue(case, config, machine)
    if found is None:
        return [memory]
    return overlapped(case, config, memory, _issued(found), (), together(case, config))


def launch_start(inputs: TemporalInputs) -> tuple[Term, float]:
    """Return the time of an empty launch, and the share of the time of its bytes that remains if L2 holds them.

    Copies hide one behind the other; temporal blocking does not end sooner because its bytes do. Source: copies of
    several sizes, launch after launch (`Calibration.small_s`); the two smallest are extrapolated to an empty one. A
    launch by call takes the host longer than those copies: it stays as it was measured.
    """
    case, config, found = inputs.case, inputs.config, inputs.calibration
    if config.launch == "call":
        return launch(inputs), 1.0
    curve = launch_curve(inputs)
    (least, shortest), (more, longer) = curve[:2]
    nothing_s = max(0.0, shortest - (longer - shortest) * least / (more - least))
    moved = traffic(case, config).total * case.fluid_sites * config.steps
    rate, most = found.runs_bytes_per_s[str(WORD_BYTES)], curve[-1][0]
    of_bytes = [(size, seconds - nothing_s) for size, seconds in curve]
    bytes_s = interpolated(of_bytes, moved) + max(0, moved - most) / rate
    seconds, sentence = nothing_s / (case.fluid_sites * config.steps), f"a launch of nothing, {nothing_s * 1e6:.2g} us"
    term = Term(names.LAUNCH, seconds, sentence, "micro-benchmark `small`")
    return term, bytes_s * rate / moved


def stages_wait(inputs: TemporalInputs) -> float:
    """Return the seconds of an update that stages wait for their exchanges, if nothing hides it.

    Source: `Calibration.stages_s`, with and without synchronisation. One step per launch, and two dimensions, in which
    warps do not synchronise, have it in their rates.
    """
    config, measured = inputs.config, inputs.calibration.stages_s
    flat = inputs.case.stencil.dimensions == 2
    if config.steps == 1 or flat or f"{config.warp_sync} by {_SPREAD[0]}" not in measured:
        return 0.0
    more = [measured[f"{config.warp_sync} by {warps}"] - measured[f"none by {warps}"] for warps in _SPREAD]
    waited = sum(more) / len(more)
    if config.warp_sync == "neighbours":
        slots_per_s = max(inputs.calibration.instructions_per_s.values()) / inputs.machine.multiprocessors
        waited -= _TO_MEET * sum(map(int, _SPREAD)) / len(_SPREAD) / slots_per_s
    return inputs.turns * waited / inputs.updates


MODEL = Family(TemporalInputs, terms, estimated, memory_bytes, uncalibrated_terms, cells_read=cells_read)
