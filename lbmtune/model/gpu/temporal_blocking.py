"""The terms of kernels that march over tiles: moments, and several steps per launch.

Planes go through memory and through what is computed, and wait for a load: what these hide of each other follows from
how many planes are on their way at the same time (`model.gpu.mva`). Within a stage it is warps that hide instructions
and exchanges behind each other; with several steps stages also wait for what their warps exchange.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import passed_planes, planes_together, spared
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import SCHEDULERS
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.copy_terms import bandwidth
from lbmtune.model.gpu.direct import SHARES
from lbmtune.model.gpu.fixed_costs import launch
from lbmtune.model.gpu.inputs import (
    AGAIN,
    ISSUE,
    LATENCY,
    LAUNCH,
    LOCAL,
    OVERTAKEN,
    STAGES,
    WALLS,
    WORD_BYTES,
    Subject,
    between,
    launched_blocks,
)
from lbmtune.model.gpu.l2_refetch import memory_bytes
from lbmtune.model.gpu.mva import Shares, shares
from lbmtune.model.gpu.occupancy import warps_of
from lbmtune.model.gpu.spill_hazards import overtaken
from lbmtune.model.gpu.spills import found_in_l1, loop_answers_s, loop_byte_s, loop_bytes
from lbmtune.model.machine.figures import numbered
from lbmtune.records import MEMORY_TERM, Term
from lbmtune.units import format_rate

if TYPE_CHECKING:
    from lbmtune.model.gpu.instruction_issue import Issue

MEMORY, EXCHANGE = MEMORY_TERM, "exchanges"
_PLANES, _LATE = 5, 2
"""Planes on their way, with several steps; where the next one is asked for in the last stage: that one, and itself.

By 1968 kernels without a lattice on an H200, which `docs/design/gpu.md` has and no calibration has: stages without
memory, planes without stages, and both together, which take as long as `queues.shares` says of so many planes. Where
compilers ask is counted (`asks_late`)."""
_FLAT = 3
"""The same in two dimensions, where warps wait for nobody, beside one in the stages of each block: neither measured by
itself nor counted."""
_SPREAD = ("8", "12", "16")
"""Warps of blocks whose stages were measured."""
_TO_MEET = 16
"""Instructions of a warp in a stage that waits for its neighbours, which are counted with all others."""


def terms(subject: Subject, without: Collection[str]) -> list[Term]:
    """Of a calibrated machine."""
    from lbmtune.model.gpu.instruction_issue import issue  # here: it prints kernels, which needs SymPy

    case, config, machine = subject.case, subject.config, subject.machine
    together = subject.blocks
    rate = bandwidth(subject, by_runs="runs" not in without)
    for name, share in SHARES.items():
        if name not in without:
            rate *= share(subject)
    found = issue(case, config, machine, together, walls=WALLS not in without)
    at_once = together * machine.multiprocessors
    moved = traffic(case, config).total if AGAIN in without else memory_bytes(case, config, machine, at_once)
    memory = memory_term(moved, rate, "micro-benchmarks")
    begun, near = (None, 1.0) if LAUNCH in without else begins(subject)
    memory = replace(memory, seconds=near * memory.seconds)
    computed = [one for one in (issued(found) if found else ()) if one.name not in without]
    waits = [] if LATENCY in without else [planes_wait(subject)]
    met = 0.0 if STAGES in without else stages_wait(subject)
    result = overlapped(case, config, memory, computed, waits, together, met)
    if LOCAL not in without:
        result.append(local_memory(subject, computed, met, found.useful if found else 1.0))
    held = None if OVERTAKEN in without else overtaken(subject, _turns(subject))
    if held:
        waited = 0.0 if LOCAL in without else _local_alone_s(subject)
        result.append(_behind_waits(subject, held, computed, waited, met))
    return [*result, begun] if begun else result


def begins(subject: Subject) -> tuple[Term, float]:
    """What a launch takes whatever it moves, and the share of the time of its bytes that is left where L2 keeps them.

    In a copy the one hides what the other takes; a march is not done sooner because its bytes are. Source: copies of so
    many bytes, launch after launch (`Calibration.small_s`), of which the two smallest lead to one of nothing. Of
    launches by call a host takes longer to call than those copies take: they stay as they were measured.
    """
    case, config, found = subject.case, subject.config, subject.calibration
    if config.launch == "call":
        return launch(subject), 1.0
    measured = numbered(tuple(found.small_s), f"{config.launch} ")
    curve = sorted((size, found.small_s[name]) for size, name in measured.items())
    (least, shortest), (more, longer) = curve[:2]
    nothing_s = max(0.0, shortest - (longer - shortest) * least / (more - least))
    moved = traffic(case, config).total * case.fluid_sites * config.steps
    rate, most = found.runs_bytes_per_s[str(WORD_BYTES)], curve[-1][0]
    bytes_s = between([(size, seconds - nothing_s) for size, seconds in curve], moved) + max(0, moved - most) / rate
    term = Term(
        name=LAUNCH,
        seconds=nothing_s / (case.fluid_sites * config.steps),
        sentence=f"a launch of nothing, {nothing_s * 1e6:.2g} us",
        source="micro-benchmark `small`",
    )
    return term, bytes_s * rate / moved


def memory_term(moved: float, bytes_per_s: float, source: str) -> Term:
    """Bytes of an update over the bandwidth."""
    sentence = f"{moved:.4g} bytes per update at {format_rate(bytes_per_s)}"
    return Term(name=MEMORY, seconds=moved / bytes_per_s, sentence=sentence, source=source)


def planes_on_their_way(case: Case, config: CudaConfig, together: int) -> int:
    """Planes of a multiprocessor that something is done for at the same time.

    With one step per launch each block has one in its stage, which leaves it; one is being read, ahead of its time.
    """
    if config.steps == 1:
        return together + 1
    late = asks_late(case, config)
    if case.stencil.dimensions == 2:
        return together + _FLAT - late
    return _LATE if late else _PLANES


def asks_late(case: Case, config: CudaConfig) -> bool:
    """Whether a compiler asks for the next plane in the last stage, when there is little left to hide it behind.

    Loads to registers stay where they are written if there is a branch around them (not `beyond`), an instruction of
    the exchange that holds them back (`barrier`), or a second plane in the pass of the loop: in compiled loops of
    several stages they stand after 9 to 62 % of the instructions then, and after 60 to 92 % otherwise.
    """
    held = not config.beyond or config.barrier != "block" or planes_together(case, config) > 1
    return config.prefetch == 0 or (config.prefetch == 1 and config.steps > 1 and not held)


def overlapped(
    case: Case,
    config: CudaConfig,
    memory: Term,
    computed: Sequence[Term],
    waits: Sequence[Term],
    together: int,
    met: float = 0.0,
) -> list[Term]:
    """Terms with what they take beside each other, shared out to an update.

    Planes queue for memory and for what is computed. computed: instructions and exchanges; waits: what each plane waits
    for whatever others do, as the mean over the `together` blocks of a multiprocessor; met: seconds per update that
    stages wait for exchanges, if nothing hides it.
    """
    planes = planes_on_their_way(case, config, together)
    if not computed:
        return _queueing([memory], waits, planes, together)
    inside, customers = _stages(case, config, [one.seconds for one in computed], together, met, 0.0)
    both = replace(computed[0], seconds=inside.total)
    memory, both, *waited = _queueing([memory, both], waits, planes, together)
    taken = both.seconds / inside.total
    parts = [
        replace(one, seconds=taken * share, sentence=_told(one, customers), alone_s=one.seconds)
        for one, share in zip(computed, inside.stations, strict=True)
    ]
    if met:
        parts.append(_meetings(taken * inside.delay, met))
    return [memory, *parts, *waited]


def _stages(
    case: Case, config: CudaConfig, computed: Sequence[float], together: int, met: float, alone: float
) -> tuple[Shares, str]:
    """What the stages of an update take, and among how many.

    With one step per launch warps of a multiprocessor hide instructions and exchanges behind each other. With several
    those of a scheduler do, and waits, too: what each waits for by itself (`alone`), and for its neighbours. Where
    blocks wait as a whole, only other blocks hide it.
    """
    warps = together * warps_of(config)
    if config.steps == 1:
        return shares(computed, 0.0, warps), f"{warps} warps"
    on_each = max(1, -(-warps // SCHEDULERS))
    block = config.barrier == "block" and case.stencil.dimensions == 3
    found = shares(computed, on_each * (alone + (0.0 if block else met)), on_each)
    if block:
        whole = shares([found.total], together * met, together)
        more = whole.stations[0] / found.total if found.total else 1.0
        found = Shares(tuple(one * more for one in found.stations), found.delay * more + whole.delay)
    return found, f"{on_each} warps of a scheduler"


def _meetings(seconds: float, met: float) -> Term:
    """Of stages that wait for exchanges."""
    sentence = f"stages wait for what warps exchange, {met * 1e12:.3g} ps if nothing hides it"
    return Term(name=STAGES, seconds=seconds, sentence=sentence, source="micro-benchmark `stages`")


def _queueing(stations: Sequence[Term], waits: Sequence[Term], planes: int, together: int) -> list[Term]:
    """Terms with the time that planes spend at each, by mean value analysis."""
    found = shares([one.seconds for one in stations], together * sum(one.seconds for one in waits), planes)
    taken = [*zip(stations, found.stations, strict=True), *((one, found.delay) for one in waits)]
    customers = f"{planes} planes"
    return [replace(one, seconds=s, sentence=_told(one, customers), alone_s=one.seconds) for one, s in taken]


def _told(term: Term, customers: str) -> str:
    """What it would take alone, and among how many."""
    return f"{term.sentence}, {term.seconds * 1e12:.3g} ps, {customers} on their way"


def issued(found: Issue) -> list[Term]:
    """Instructions and exchanges, halos included."""
    halos = "per update, halos included"
    return [
        Term(name=ISSUE, seconds=found.seconds, sentence=f"{found.slots:.0f} slots {halos}", source=found.source),
        Term(
            name=EXCHANGE,
            seconds=found.exchange_s,
            sentence=f"{found.exchanges:.0f} words between lanes and in shared memory {halos}",
            source=found.source,
        ),
    ]


def planes_wait(subject: Subject) -> Term:
    """The planes of which each waits for the one before: at least as long as a load takes.

    Source: `Calibration.latency_s`, from memory.
    """
    case, config, found = subject.case, subject.config, subject.calibration
    turns, planes = _waves(subject), _planes(case, config)
    waited = turns * planes * found.latency_s
    return Term(
        name=LATENCY,
        seconds=waited / (case.fluid_sites * config.steps),
        sentence=f"{turns} x {planes:.4g} planes, one after the other",
        source="micro-benchmark `latency`",
    )


def stages_wait(subject: Subject) -> float:
    """Seconds of an update that stages wait for their exchanges, if nothing hides it.

    Source: `Calibration.stages_s`, with the meeting and without; a march of one step, and one in two dimensions, whose
    warps wait for nobody, have it in their rates.
    """
    config, measured = subject.config, subject.calibration.stages_s
    flat = subject.case.stencil.dimensions == 2
    if config.steps == 1 or flat or f"{config.barrier} by {_SPREAD[0]}" not in measured:
        return 0.0
    more = [measured[f"{config.barrier} by {warps}"] - measured[f"none by {warps}"] for warps in _SPREAD]
    waited = sum(more) / len(more)
    if config.barrier == "neighbours":
        waited -= _TO_MEET * sum(map(int, _SPREAD)) / len(_SPREAD) / _slots_per_s(subject)
    return _turns(subject) * waited / subject.case.fluid_sites


def _slots_per_s(subject: Subject) -> float:
    """Of a multiprocessor."""
    return max(subject.calibration.instructions_per_s.values()) / subject.machine.multiprocessors


def _turns(subject: Subject) -> float:
    """Planes that a multiprocessor takes one after the other, its blocks being at work at the same time."""
    return _waves(subject) * (_planes(subject.case, subject.config) - spared(subject.case, subject.config))


def _waves(subject: Subject) -> int:
    """Blocks that a place on a multiprocessor takes one after the other."""
    return -(-launched_blocks(subject) // (subject.machine.multiprocessors * subject.blocks))


def _planes(case: Case, config: CudaConfig) -> float:
    """Of a block, as the mean over its column: chunks are even, or ever shorter."""
    passed = passed_planes(case, config)
    return sum(passed) / len(passed)


def local_memory(subject: Subject, computed: Sequence[Term], met: float, useful: float) -> Term:
    """What registers that were spilled take: from L1, as far as it has them beside what goes by.

    The others come from L2, as far as it keeps them, and from memory, and threads wait for them. useful: share of the
    cells that are computed, halos being the rest; computed, met: as of `overlapped`.
    """
    moved = loop_bytes(subject) / useful
    return Term(
        name=LOCAL,
        seconds=moved * loop_byte_s(subject) + _local_waits_s(subject, computed, met) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmarks `local`, `again`, `latency`",
    )


def _local_waits_s(subject: Subject, computed: Sequence[Term], met: float) -> float:
    """What an update waits for spilled registers that L1 does not answer with at once.

    Loads that stand together wait together, as long as a load takes that L2 answers, or memory; with several steps
    other warps hide it. With one step per launch those wait, too, which L1 could answer: counters say so, and a load
    from L1 that stands behind eight of its thread from memory takes 220 to 360 cycles longer, about as long as L2
    takes.
    """
    config, answers_s = subject.config, loop_answers_s(subject)
    if config.steps == 1:
        return answers_s / subject.calibration.latency_s * planes_wait(subject).seconds
    parts = [one.seconds for one in computed]
    return _staged_s(subject, parts, met, _local_alone_s(subject)) - _staged_s(subject, parts, met, 0.0)


def _local_alone_s(subject: Subject) -> float:
    """What a warp waits for them in an update with several steps, if nothing hides it."""
    waited = (1 - found_in_l1(subject)) * loop_answers_s(subject)
    return waited * _turns(subject) / (subject.case.fluid_sites * subject.config.steps)


def _staged_s(subject: Subject, computed: Sequence[float], met: float, alone: float) -> float:
    """As of `_stages`."""
    return _stages(subject.case, subject.config, computed, subject.blocks, met, alone)[0].total


def _behind_waits(subject: Subject, held: Term, computed: Sequence[Term], waited: float, met: float) -> Term:
    """What it takes that a multiprocessor is held up, beyond what its warps wait for anyway with several steps."""
    if subject.config.steps == 1:
        return held
    parts = [one.seconds for one in computed]
    seconds = _staged_s(subject, [*parts, held.seconds], met, waited) - _staged_s(subject, parts, met, waited)
    return replace(held, seconds=seconds, alone_s=held.seconds)
