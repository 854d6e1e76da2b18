"""Terms of temporal blocking: tiles with a halo that go up along z, of moments, or several steps per launch.

Planes queue for memory and for what is computed, and wait for a load: how much of it overlaps follows from how many
planes are in flight (`model.gpu.terms.mva`). Within a stage warps hide instructions and exchanges behind each other;
with several steps, stages also wait for what their warps exchange.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod

from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking, planes_together
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import SCHEDULERS
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.direct import SHARES
from lbmtune.model.gpu.occupancy import warps_of
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.temporal_blocking.instruction_issue import Issue, efficiency, issue, registers, together
from lbmtune.model.gpu.temporal_blocking.l2_refetch import memory_bytes
from lbmtune.model.gpu.temporal_blocking.spills import (
    found_in_l1,
    hazard_stalls,
    loop_answers_s,
    loop_byte_s,
    loop_bytes,
)
from lbmtune.model.gpu.terms.copies import bandwidth
from lbmtune.model.gpu.terms.fixed_costs import launch
from lbmtune.model.gpu.terms.mva import Shares, shares
from lbmtune.model.gpu.terms.spills import estimated_by_registers
from lbmtune.model.machine.curves import by_number, interpolated
from lbmtune.model.machine.description import WORD_BYTES, Machine
from lbmtune.model.roofline import memory_term
from lbmtune.records import Resources, Term
from lbmtune.records import terms as names

_PLANES, _LATE = 5, 2
"""Planes in flight with several steps; and if the next one is loaded in the last stage: that one and the present one.

From 1968 kernels without a lattice on an H200, which no calibration has (`docs/design/gpu.md`): stages without memory,
planes without stages, and both together, which take as long as `mva.shares` says of that many planes. Where
compilers place the loads is counted (`loads_late`)."""
_FLAT = 3
"""The same in two dimensions without synchronisation, besides one in the stages of each block; neither measured nor
counted."""
_SPREAD = ("8", "12", "16")
"""Warps of the blocks whose stages were measured."""
_TO_MEET = 16
"""Instructions of a warp in a stage that waits for its neighbours, which are counted with all others."""


def estimated(case: Case, config: TemporalBlocking) -> Resources:
    """Estimate the resources of a kernel that was not compiled."""
    return estimated_by_registers(case, config, registers(case, config), prod(config.block))


def terms(inputs: TemporalInputs, without: Collection[str]) -> list[Term]:
    """Return the terms of a calibrated machine."""
    case, config, blocks = inputs.case, inputs.config, inputs.blocks
    found = issue(case, config, inputs.machine, blocks, walls=names.WALLS not in without)
    start, cached = (None, 1.0) if names.LAUNCH in without else launch_start(inputs)
    memory = _memory(inputs, without)
    memory = replace(memory, seconds=cached * memory.seconds)
    computed = [one for one in (issued(found) if found else ()) if one.name not in without]
    waits = [] if names.LATENCY in without else [planes_wait(inputs)]
    stages_s = 0.0 if names.STAGES in without else stages_wait(inputs)
    result = overlapped(case, config, memory, computed, waits, blocks, stages_s)
    if names.LOCAL not in without:
        result.append(local_memory(inputs, computed, stages_s, found.useful if found else 1.0))
    hazards = None if names.SPILL_HAZARDS in without else hazard_stalls(inputs, inputs.turns)
    if hazards:
        waited = 0.0 if names.LOCAL in without else _local_alone_s(inputs)
        result.append(_behind_waits(inputs, hazards, computed, waited, stages_s))
    return [*result, start] if start else result


def cells_read(case: Case, config: TemporalBlocking) -> float:
    """Return the cells that a launch reads per cell that it updates, halos included."""
    return 1 / efficiency(case, config, 1).cells


def _memory(inputs: TemporalInputs, without: Collection[str]) -> Term:
    """Return the time of the bytes that memory moves at the bandwidth in use."""
    rate = bandwidth(inputs, by_runs="runs" not in without)
    for name, share in SHARES.items():
        if name not in without:
            rate *= share(inputs)
    case, config, machine = inputs.case, inputs.config, inputs.machine
    at_once = inputs.blocks * machine.multiprocessors
    moved = traffic(case, config).total if names.L2_REFETCH in without else memory_bytes(case, config, machine, at_once)
    return memory_term(moved, rate, "micro-benchmarks")


def uncalibrated_terms(case: Case, config: TemporalBlocking, machine: Machine, memory: Term) -> list[Term]:
    """Return bytes, and the issue of instructions at the rates of the architecture."""
    found = issue(case, config, machine)
    if found is None:
        return [memory]
    return overlapped(case, config, memory, issued(found), (), together(case, config))


def launch_start(inputs: TemporalInputs) -> tuple[Term, float]:
    """Return the time of an empty launch, and the share of the time of its bytes that remains if L2 holds them.

    Copies hide one behind the other; temporal blocking does not end sooner because its bytes do. Source: copies of
    several sizes, launch after launch (`Calibration.small_s`); the two smallest are extrapolated to an empty one. A
    launch by call takes the host longer than those copies: it stays as it was measured.
    """
    case, config, found = inputs.case, inputs.config, inputs.calibration
    if config.launch == "call":
        return launch(inputs), 1.0
    measured = by_number(tuple(found.small_s), f"{config.launch} ")
    curve = sorted((size, found.small_s[name]) for size, name in measured.items())
    (least, shortest), (more, longer) = curve[:2]
    nothing_s = max(0.0, shortest - (longer - shortest) * least / (more - least))
    moved = traffic(case, config).total * case.fluid_sites * config.steps
    rate, most = found.runs_bytes_per_s[str(WORD_BYTES)], curve[-1][0]
    bytes_s = (
        interpolated([(size, seconds - nothing_s) for size, seconds in curve], moved) + max(0, moved - most) / rate
    )
    term = Term(
        name=names.LAUNCH,
        seconds=nothing_s / (case.fluid_sites * config.steps),
        sentence=f"a launch of nothing, {nothing_s * 1e6:.2g} us",
        source="micro-benchmark `small`",
    )
    return term, bytes_s * rate / moved


def planes_in_flight(case: Case, config: TemporalBlocking, together: int) -> int:
    """Return the planes of a multiprocessor that are in work at the same time.

    With one step per launch each block has one in its stage, and one more is being read.
    """
    if config.steps == 1:
        return together + 1
    late = loads_late(case, config)
    if case.stencil.dimensions == 2:
        return together + _FLAT - late
    return _LATE if late else _PLANES


def loads_late(case: Case, config: TemporalBlocking) -> bool:
    """Return whether compilers place the loads of the next plane in the last stage, with little left to hide them.

    Loads to registers stay where they are written if a branch surrounds them (no `overread`), an instruction of the
    exchange holds them back (`warp_sync`), or the loop has a second plane: then they stand after 9 to 62 % of the
    instructions of compiled loops of several stages, otherwise after 60 to 92 %.
    """
    held = not config.overread or config.warp_sync != "block" or planes_together(case, config) > 1
    return config.plane_fetch == "none" or (config.plane_fetch == "registers" and config.steps > 1 and not held)


def overlapped(
    case: Case,
    config: TemporalBlocking,
    memory: Term,
    computed: Sequence[Term],
    waits: Sequence[Term],
    together: int,
    stages_s: float = 0.0,
) -> list[Term]:
    """Return terms with the time that they add to an update if they overlap.

    Planes queue for memory and for what is computed. computed: instructions and exchanges; waits: delays of each plane
    that no other shares, as the mean over the `together` blocks of a multiprocessor; stages_s: seconds per update that
    stages wait for exchanges, if nothing hides it.
    """
    planes = planes_in_flight(case, config, together)
    if not computed:
        return _queueing([memory], waits, planes, together)
    inside, customers = _stages(case, config, [one.seconds for one in computed], together, stages_s, 0.0)
    both = replace(computed[0], seconds=inside.total)
    memory, both, *waited = _queueing([memory, both], waits, planes, together)
    taken = both.seconds / inside.total
    parts = [
        replace(one, seconds=taken * share, sentence=_with_alone(one, customers), alone_s=one.seconds)
        for one, share in zip(computed, inside.stations, strict=True)
    ]
    if stages_s:
        parts.append(_stages_term(taken * inside.delay, stages_s))
    return [memory, *parts, *waited]


def _stages(
    case: Case, config: TemporalBlocking, computed: Sequence[float], together: int, stages_s: float, alone: float
) -> tuple[Shares, str]:
    """Return the time of the stages of an update, and the customers among which it is shared.

    With one step per launch the warps of a multiprocessor hide instructions and exchanges behind each other. With
    several steps those of a scheduler do, and also hide waits: of each by itself (`alone`), and for its neighbours. If
    whole blocks synchronise, only other blocks hide it.
    """
    warps = together * warps_of(prod(config.block))
    if config.steps == 1:
        return shares(computed, 0.0, warps), f"{warps} warps"
    on_each = max(1, -(-warps // SCHEDULERS))
    block = config.warp_sync == "block" and case.stencil.dimensions == 3
    found = shares(computed, on_each * (alone + (0.0 if block else stages_s)), on_each)
    if block:
        whole = shares([found.total], together * stages_s, together)
        more = whole.stations[0] / found.total if found.total else 1.0
        found = Shares(tuple(one * more for one in found.stations), found.delay * more + whole.delay)
    return found, f"{on_each} warps of a scheduler"


def _stages_term(seconds: float, stages_s: float) -> Term:
    """Return the term of stages that wait for exchanges."""
    sentence = f"stages wait for what warps exchange, {stages_s * 1e12:.3g} ps if nothing hides it"
    return Term(name=names.STAGES, seconds=seconds, sentence=sentence, source="micro-benchmark `stages`")


def _queueing(stations: Sequence[Term], waits: Sequence[Term], planes: int, together: int) -> list[Term]:
    """Return terms with the time that planes spend at each, by mean value analysis."""
    found = shares([one.seconds for one in stations], together * sum(one.seconds for one in waits), planes)
    taken = [*zip(stations, found.stations, strict=True), *((one, found.delay) for one in waits)]
    customers = f"{planes} planes"
    return [replace(one, seconds=s, sentence=_with_alone(one, customers), alone_s=one.seconds) for one, s in taken]


def _with_alone(term: Term, customers: str) -> str:
    """Return the sentence of a term with its time alone, and the customers."""
    return f"{term.sentence}, {term.seconds * 1e12:.3g} ps alone, {customers} in flight"


def issued(found: Issue) -> list[Term]:
    """Return the terms of instructions and exchanges, halos included."""
    halos = "per update, halos included"
    return [
        Term(
            name=names.ISSUE,
            seconds=found.seconds,
            sentence=f"{found.slots:.0f} issue slots {halos}",
            source=found.source,
        ),
        Term(
            name=names.EXCHANGE,
            seconds=found.exchange_s,
            sentence=f"{found.exchanges:.0f} words between lanes and in shared memory {halos}",
            source=found.source,
        ),
    ]


def planes_wait(inputs: TemporalInputs) -> Term:
    """Return the time of planes that each wait for the one before: at least the latency of a load.

    Source: `Calibration.latency_s`, from memory.
    """
    case, config, found = inputs.case, inputs.config, inputs.calibration
    turns, planes = inputs.waves, inputs.planes
    waited = turns * planes * found.latency_s
    return Term(
        name=names.LATENCY,
        seconds=waited / (case.fluid_sites * config.steps),
        sentence=f"{turns} x {planes:.4g} planes, one after the other",
        source="micro-benchmark `latency`",
    )


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
        waited -= _TO_MEET * sum(map(int, _SPREAD)) / len(_SPREAD) / _slots_per_s(inputs)
    return inputs.turns * waited / inputs.case.fluid_sites


def _slots_per_s(inputs: TemporalInputs) -> float:
    """Return the issue slots of a multiprocessor per second."""
    return max(inputs.calibration.instructions_per_s.values()) / inputs.machine.multiprocessors


def local_memory(inputs: TemporalInputs, computed: Sequence[Term], stages_s: float, useful: float) -> Term:
    """Return the time of spilled registers: from L1 as far as it holds them, else from L2 or memory with waits.

    useful: share of the computed cells that are no halo; computed, stages_s: see `overlapped`.
    """
    moved = loop_bytes(inputs) / useful
    return Term(
        name=names.LOCAL,
        seconds=moved * loop_byte_s(inputs) + _local_waits_s(inputs, computed, stages_s) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmarks `local`, `again`, `latency`",
    )


def _local_waits_s(inputs: TemporalInputs, computed: Sequence[Term], stages_s: float) -> float:
    """Return the seconds that an update waits for spilled registers that L1 does not return at once.

    Loads that stand together wait together, as long as a load from L2 or memory; with several steps other warps hide
    it. With one step per launch loads from L1 wait, too: counters show it, and a load from L1 behind eight loads of its
    thread from memory takes 220 to 360 cycles longer, about the latency of L2.
    """
    config, answers_s = inputs.config, loop_answers_s(inputs)
    if config.steps == 1:
        return answers_s / inputs.calibration.latency_s * planes_wait(inputs).seconds
    parts = [one.seconds for one in computed]
    return _staged_s(inputs, parts, stages_s, _local_alone_s(inputs)) - _staged_s(inputs, parts, stages_s, 0.0)


def _local_alone_s(inputs: TemporalInputs) -> float:
    """Return the seconds that a warp waits for them in an update with several steps, if nothing hides it."""
    waited = (1 - found_in_l1(inputs)) * loop_answers_s(inputs)
    return waited * inputs.turns / (inputs.case.fluid_sites * inputs.config.steps)


def _staged_s(inputs: TemporalInputs, computed: Sequence[float], stages_s: float, alone: float) -> float:
    """Return the time of the stages of an update."""
    return _stages(inputs.case, inputs.config, computed, inputs.blocks, stages_s, alone)[0].total


def _behind_waits(inputs: TemporalInputs, held: Term, computed: Sequence[Term], waited: float, stages_s: float) -> Term:
    """Return the time of stalls of a multiprocessor beyond the waits of its warps with several steps."""
    if inputs.config.steps == 1:
        return held
    parts = [one.seconds for one in computed]
    seconds = _staged_s(inputs, [*parts, held.seconds], stages_s, waited) - _staged_s(inputs, parts, stages_s, waited)
    return replace(held, seconds=seconds, alone_s=held.seconds)
