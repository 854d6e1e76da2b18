"""Spilled registers of temporal blocking: bytes of the loop over planes, waits for them, and hazards.

Write-after-read hazards are words of local memory that are stored while a load of them is in flight: compilers put the
register that a loop spills next into the place of the one that it has just loaded. If memory has to answer the load,
the multiprocessor stalls until it has (docs/design/gpu.md).
"""

from collections.abc import Callable
from dataclasses import replace

from lbmtune.catalogue.boundaries.bounce_back_routes import cuts
from lbmtune.catalogue.families.cuda.temporal_blocking import planes_together
from lbmtune.catalogue.limits import WARP
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.temporal_blocking.overlap import planes_wait
from lbmtune.model.gpu.terms.spills import left_in_l1
from lbmtune.model.machine.benchmark_names import OVERTAKEN_WARPS, OVERTAKING, overtaken_name
from lbmtune.model.machine.curves import interpolated, retained_in_l2
from lbmtune.records import Term
from lbmtune.records.terms import LOCAL, SPILL_HAZARDS

Staged = Callable[..., float]
"""Seconds of the stages of an update, by the wait of a warp alone and further demands of the multiprocessor."""

_IN_LOOP = {1: 0.70, 2: 0.59}
"""Share of spilled bytes that the loop stores and loads, by the planes of a pass; medians of 94 loops that were
compiled for compute capability 9.0."""
_IN_A_TEXT = 0.22
"""The same if links can be cut: there are four texts, and a warp executes one; of 43 such loops."""
_LOADED, _TOGETHER = 0.54, 5
"""Share of these that are loaded, and loads that stand together before one of them is used; from the same."""


def loop_bytes(inputs: TemporalInputs) -> float:
    """Return the bytes per update that the loop stores and loads of spilled registers."""
    config = inputs.config
    cells = config.cells_per_thread * config.rows * config.steps * planes_together(inputs.case, config)
    return _in_loop(inputs) * (inputs.resources.spill_bytes / cells)


def _in_loop(inputs: TemporalInputs) -> float:
    """Return the share of spilled bytes that a plane stores and loads; the rest is before and after the loop."""
    if cuts(inputs.case) and inputs.case.stencil.dimensions == 3:
        return _IN_A_TEXT
    return _IN_LOOP[planes_together(inputs.case, inputs.config)]


def loop_answers_s(inputs: TemporalInputs) -> float:
    """Return the seconds that a warp waits in a plane for spilled registers from L2 or memory.

    Loads that stand together wait together, as long as one load takes.
    """
    config, found = inputs.config, inputs.calibration
    words = _LOADED * _in_loop(inputs) * inputs.resources.spill_bytes / config.computed.bytes
    places = words / planes_together(inputs.case, config) / _TOGETHER
    share = _retained_in_l2(inputs)
    return places * (share * found.l2_latency_s + (1 - share) * found.latency_s)


def found_in_l1(inputs: TemporalInputs) -> float:
    """Return the share of the words loaded by the loop that L1 holds beside the shared memory.

    A word waits for about a plane. Meanwhile lines come in for the plane that is read, and for words that are stored
    again after L1 has lost them.
    """
    config, lines_bytes = inputs.config, inputs.cache_bytes
    local_bytes = inputs.threads * inputs.resources.local_bytes
    cells = inputs.threads * config.cells_per_thread * config.rows
    plane_bytes = cells * config.kept.values(inputs.case.stencil) * config.stored.bytes
    return left_in_l1(lines_bytes, local_bytes, plane_bytes)


def loop_byte_s(inputs: TemporalInputs) -> float:
    """Return the seconds of the device for a byte that the loop stores or loads."""
    rates = inputs.calibration.local_bytes_per_s
    near, share = found_in_l1(inputs), _retained_in_l2(inputs)
    return near / rates["L1"] + (1 - near) * (share / rates["L2"] + (1 - share) / rates["memory"])


def _retained_in_l2(inputs: TemporalInputs) -> float:
    """Return the share of stored words that L2 still has at their load: all threads have stored as much meanwhile.

    Other traffic does not evict them, by counters: of 15 MB all stay, of 24 MB three quarters, of 27 MB half.
    """
    stored = _in_loop(inputs) * inputs.resources.local_bytes
    return retained_in_l2(inputs.machine, stored * inputs.threads * inputs.machine.multiprocessors)


def local_memory(inputs: TemporalInputs, staged_s: Staged, useful: float) -> Term:
    """Return the time of spilled registers: from L1 as far as it holds them, else from L2 or memory with waits.

    useful: share of the computed cells that are no halo.
    """
    moved = loop_bytes(inputs) / useful
    seconds = moved * loop_byte_s(inputs) + _waits_s(inputs, staged_s) if moved else 0.0
    sentence = f"{moved:.3g} bytes of spilled registers per update"
    return Term(LOCAL, seconds, sentence, "compiled code; micro-benchmarks `local`, `again`, `latency`")


def _waits_s(inputs: TemporalInputs, staged_s: Staged) -> float:
    """Return the seconds that an update waits for spilled registers that L1 does not return at once.

    Loads that stand together wait together, as long as a load from L2 or memory; with several steps other warps hide
    it. With one step per launch loads from L1 wait, too: counters show it, and a load from L1 behind eight loads of its
    thread from memory takes 220 to 360 cycles longer, about the latency of L2.
    """
    if inputs.config.steps == 1:
        return loop_answers_s(inputs) / inputs.calibration.latency_s * planes_wait(inputs).seconds
    return staged_s(alone_s(inputs)) - staged_s(0.0)


def alone_s(inputs: TemporalInputs) -> float:
    """Return the seconds that a warp waits for them in an update with several steps, if nothing hides it."""
    waited = (1 - found_in_l1(inputs)) * loop_answers_s(inputs)
    return waited * inputs.turns / (inputs.updates * inputs.config.steps)


def behind_waits(inputs: TemporalInputs, held: Term, staged_s: Staged, waited: float) -> Term:
    """Return the time of stalls of a multiprocessor beyond the waits of its warps with several steps."""
    if inputs.config.steps == 1:
        return held
    return replace(held, seconds=staged_s(waited, held.seconds) - staged_s(waited), alone_s=held.seconds)


def hazard_stalls(inputs: TemporalInputs, turns: float) -> Term | None:
    """Return the time of the stalls; None if there is no hazard, or if one was not counted or not measured.

    turns: planes that a multiprocessor takes one after the other. Memory answers as far as L2 has lost what all threads
    have spilled. Source: compiled code;
    `Calibration.overtaken_s`, `again_bytes_per_s`.
    """
    case, config, words = inputs.case, inputs.config, inputs.resources.overtaken
    if not words or not inputs.calibration.overtaken_s:
        return None
    warps = inputs.threads // WARP
    spilled_bytes = inputs.threads * inputs.resources.local_bytes * inputs.machine.multiprocessors
    lost = 1 - retained_in_l2(inputs.machine, spilled_bytes)
    each = turns / planes_together(case, config) * warps * words * lost / (inputs.updates * config.steps)
    sentence = f"{words} stores of a loop to spilled words whose load is in flight, {lost:.1%} of it from memory"
    source = "compiled code; micro-benchmarks `overtaken`, `again`"
    return Term(SPILL_HAZARDS, each * stall_s(inputs, warps), sentence, source)


def stall_s(inputs: TemporalInputs, warps: int) -> float:
    """Return the additional seconds of a multiprocessor for such a word, over a word that is stored after its load."""
    measured, warps = inputs.calibration.overtaken_s, max(warps, OVERTAKEN_WARPS[0])
    used, meanwhile = (
        interpolated([(count, measured[overtaken_name(how, count)]) for count in OVERTAKEN_WARPS], warps)
        for how in OVERTAKING
    )
    return max(0.0, meanwhile - used)
