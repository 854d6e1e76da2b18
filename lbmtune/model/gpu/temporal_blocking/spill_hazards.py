"""Write-after-read hazards on spilled registers: words of local memory that are stored while a load is in flight.

Compilers put the register that a loop spills next into the place of the one that it has just loaded. If memory has to
answer the load, the multiprocessor stalls until it has (docs/design/gpu.md).
"""

from __future__ import annotations

from lbmtune.catalogue.families.cuda.temporal_blocking import planes_together
from lbmtune.catalogue.limits import WARP
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.machine.benchmark_names import OVERTAKEN_WARPS, OVERTAKING, overtaken_name
from lbmtune.model.machine.caches import retained_in_l2
from lbmtune.model.machine.curves import interpolated
from lbmtune.records import Term
from lbmtune.records.terms import SPILL_HAZARDS


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
    each = turns / planes_together(case, config) * warps * words * lost / (case.fluid_sites * config.steps)
    return Term(
        name=SPILL_HAZARDS,
        seconds=each * stall_s(inputs, warps),
        sentence=f"{words} stores of a loop to spilled words whose load is in flight, {lost:.1%} of it from memory",
        source="compiled code; micro-benchmarks `overtaken`, `again`",
    )


def stall_s(inputs: TemporalInputs, warps: int) -> float:
    """Return the additional seconds of a multiprocessor for such a word, over a word that is stored after its load."""
    measured, warps = inputs.calibration.overtaken_s, max(warps, OVERTAKEN_WARPS[0])
    used, meanwhile = (
        interpolated([(count, measured[overtaken_name(how, count)]) for count in OVERTAKEN_WARPS], warps)
        for how in OVERTAKING
    )
    return max(0.0, meanwhile - used)
