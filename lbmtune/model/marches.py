"""The terms of kernels that march over tiles: moments, and several steps per launch.

Planes go through memory, the issue of instructions and exchanges one after another, and wait for a load: what these
hide of each other follows from how many planes are on their way at the same time (`model.queues`). With one step per
launch instructions and exchanges are one place to a plane: there it is warps that hide them behind each other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import WARP, planes_together
from lbmtune.model.again import kept, memory_bytes
from lbmtune.model.copies import bandwidth
from lbmtune.model.once import launch
from lbmtune.model.queues import shares
from lbmtune.model.spilled import spilled_bytes
from lbmtune.model.subject import ISSUE, LATENCY, LAUNCH, LOCAL, Subject, launched_blocks
from lbmtune.model.terms import SHARES
from lbmtune.records import Term
from lbmtune.units import format_rate

if TYPE_CHECKING:
    from lbmtune.model.issue import Issue

MEMORY, EXCHANGE = "memory", "exchanges"
_BESIDE = 2
"""Planes on their way beside those in the stages of the blocks of a multiprocessor: one is read, and one is left; with
one step per launch it is left by the stage that it is in."""
_IN_LOOP = {1: 0.70, 2: 0.59}
"""Share of spilled bytes that the loop stores and loads, by the planes that a pass of it takes; medians of 94 loops
that were compiled for compute capability 9.0."""
_LOADED, _TOGETHER = 0.54, 5
"""Share of these that are loaded, and how many loads stand together before one of them is needed; from the same."""


def terms(subject: Subject, without: Collection[str]) -> list[Term]:
    """Of a calibrated machine."""
    from lbmtune.model.issue import issue  # here: it prints kernels, which needs SymPy

    case, config, machine = subject.case, subject.config, subject.machine
    together = subject.threads // prod(config.block)
    rate = bandwidth(subject, by_runs="runs" not in without)
    for name, share in SHARES.items():
        if name not in without:
            rate *= share(subject)
    found = issue(case, config, machine, together)
    memory = memory_term(
        memory_bytes(case, config, machine, together * machine.multiprocessors), rate, "micro-benchmarks"
    )
    computed = [one for one in (issued(found) if found else ()) if one.name not in without]
    waits = [] if LATENCY in without else [planes_wait(subject)]
    result = overlapped(case, config, memory, computed, waits, together)
    if LOCAL not in without:
        result.append(local_memory(subject, found.useful if found else 1.0))
    return result if LAUNCH in without else [*result, launch(subject)]


def memory_term(moved: float, bytes_per_s: float, source: str) -> Term:
    """Bytes of an update over the bandwidth."""
    sentence = f"{moved:.4g} bytes per update at {format_rate(bytes_per_s)}"
    return Term(name=MEMORY, seconds=moved / bytes_per_s, sentence=sentence, source=source)


def planes_on_their_way(case: Case, config: CudaConfig, together: int) -> int:
    """Planes of a multiprocessor that something is done for at the same time.

    Each block has one in its stages; one is being read, ahead of its time, and one is being left. Blocks whose warps
    wait for their neighbours alone, or in two dimensions for none, may be in two stages at once, if there are several.
    """
    apart = config.barrier == "neighbours" or case.stencil.dimensions == 2
    two_stages = apart and config.steps > 1
    beside = _BESIDE if config.steps > 1 else _BESIDE - 1
    return together + beside + two_stages - asks_late(case, config)


def asks_late(case: Case, config: CudaConfig) -> bool:
    """Whether a compiler asks for the next plane in the last stage, when there is little left to hide it behind.

    Loads to registers stay where they are written if there is a branch around them (not `beyond`), an instruction of
    the exchange that holds them back (`barrier`), or a second plane in the pass of the loop: in compiled loops of
    several stages they stand after 9 to 62 % of the instructions then, and after 60 to 92 % otherwise.
    """
    held = not config.beyond or config.barrier != "block" or planes_together(case, config) > 1
    return config.prefetch == 0 or (config.prefetch == 1 and config.steps > 1 and not held)


def overlapped(
    case: Case, config: CudaConfig, memory: Term, computed: Sequence[Term], waits: Sequence[Term], together: int
) -> list[Term]:
    """Terms with what they take beside each other, shared out to an update.

    With several steps planes queue for memory and for each of what is computed; with one, for memory and all of that.
    computed: instructions and exchanges; waits: what each plane waits for whatever others do, as the mean over the
    `together` blocks of a multiprocessor.
    """
    planes = planes_on_their_way(case, config, together)
    if config.steps > 1 or not computed:
        return _queueing([memory, *computed], waits, planes, together)
    warps = together * prod(config.block) // WARP
    inside = shares([one.seconds for one in computed], 0.0, warps)
    both = replace(computed[0], seconds=inside.total)
    memory, both, *waited = _queueing([memory, both], waits, planes, together)
    parts = [
        replace(one, seconds=both.seconds * share / inside.total, sentence=_told(one, f"{warps} warps"))
        for one, share in zip(computed, inside.stations, strict=True)
    ]
    return [memory, *parts, *waited]


def _queueing(stations: Sequence[Term], waits: Sequence[Term], planes: int, together: int) -> list[Term]:
    """Terms with the time that planes spend at each, by mean value analysis."""
    found = shares([one.seconds for one in stations], together * sum(one.seconds for one in waits), planes)
    taken = [*zip(stations, found.stations, strict=True), *((one, found.delay) for one in waits)]
    return [replace(one, seconds=seconds, sentence=_told(one, f"{planes} planes")) for one, seconds in taken]


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
    planes = config.march + 2 * config.steps
    at_once = subject.machine.multiprocessors * max(1, subject.threads // prod(config.block))
    turns = -(-launched_blocks(subject) // at_once)
    waited = turns * planes * found.latency_s
    return Term(
        name=LATENCY,
        seconds=waited / (case.fluid_sites * config.steps),
        sentence=f"{turns} x {planes} planes, one after the other",
        source="micro-benchmark `latency`",
    )


def local_memory(subject: Subject, useful: float) -> Term:
    """What registers that were spilled take: from L1 where all threads in flight have room beside the shared memory.

    Otherwise from L2, as far as it keeps them, and from memory; and what threads wait for them. useful: share of the
    cells that are computed, halos being the rest.
    """
    moved = _in_loop(subject) * spilled_bytes(subject) / useful
    return Term(
        name=LOCAL,
        seconds=moved * _local_byte_s(subject) + _local_waits_s(subject) if moved else 0.0,
        sentence=f"{moved:.3g} bytes of spilled registers per update",
        source="compiled code; micro-benchmarks `local`, `again`, `latency`",
    )


def _local_waits_s(subject: Subject) -> float:
    """What an update waits for spilled registers that L1 does not answer with at once.

    Loads that stand together wait together, as long as a load takes that L2 answers, or memory. With one step per
    launch those wait, too, which L1 could answer: counters say so, and a load from L1 that stands behind eight of its
    thread from memory takes 220 to 360 cycles longer, about as long as L2 takes.
    """
    config, found = subject.config, subject.calibration
    if config.steps > 1 and _fits_in_l1(subject):
        return 0.0
    words = _LOADED * _in_loop(subject) * subject.resources.spill_bytes / planes_together(subject.case, subject.config)
    share = _kept_in_l2(subject)
    of_memory = 1 - share + share * found.l2_latency_s / found.latency_s
    return words / config.computed.bytes / _TOGETHER * of_memory * planes_wait(subject).seconds


def _in_loop(subject: Subject) -> float:
    """Of what is spilled, what a plane stores and loads; the rest lies before the loop and behind it."""
    return _IN_LOOP[planes_together(subject.case, subject.config)]


def _fits_in_l1(subject: Subject) -> bool:
    """Whether local memory of all threads in flight has room beside the shared memory and the planes that go by.

    By counters 85 % of the words are found of 44 KB that leave room for a plane, none of 8 to 24 KB that leave none.
    """
    config = subject.config
    cells = subject.threads * config.cells_per_thread * config.rows
    plane = cells * config.kept.values(subject.case.stencil) * config.stored.bytes
    shared = subject.threads // prod(config.block) * subject.shared_bytes
    return subject.threads * subject.resources.local_bytes + shared + plane <= subject.calibration.l1_bytes


def _local_byte_s(subject: Subject) -> float:
    """Seconds of the device for a byte."""
    rates = subject.calibration.local_bytes_per_s
    if _fits_in_l1(subject):
        return 1 / rates["L1"]
    share = _kept_in_l2(subject)
    return share / rates["L2"] + (1 - share) / rates["memory"]


def _kept_in_l2(subject: Subject) -> float:
    """Share of what the loop stores that L2 still has when it is loaded: all threads have stored as much meanwhile.

    What else goes by does not drive it out, by counters: of 15 MB all stay, of 24 MB three quarters, of 27 MB half.
    """
    stored = _in_loop(subject) * subject.resources.local_bytes
    return kept(subject.machine, stored * subject.threads * subject.machine.multiprocessors)
