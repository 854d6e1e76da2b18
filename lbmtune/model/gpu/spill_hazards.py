"""Words of local memory that are stored while a load of them is on its way from memory.

Compilers put the register that a loop spills next into the place of the one that it has just asked for. Where memory
has to answer, the multiprocessor is held up until it has (docs/design/gpu.md).
"""

from __future__ import annotations

from lbmtune.catalogue.families.cuda.temporal_blocking import planes_together
from lbmtune.catalogue.limits import WARP
from lbmtune.model.gpu.inputs import OVERTAKEN, Subject, between
from lbmtune.model.gpu.l2_refetch import kept
from lbmtune.model.machine.benchmark_names import OVERTAKEN_WARPS, OVERTAKING, overtaken_name
from lbmtune.records import Term


def overtaken(subject: Subject, turns: float) -> Term | None:
    """What they take of an update; None where nothing is overtaken, nobody has looked, or nobody has measured it.

    turns: planes that a multiprocessor takes one after the other. Memory answers as far as the L2 cache has lost what
    all threads have spilled. Source: compiled code; `Calibration.overtaken_s`, `again_bytes_per_s`.
    """
    case, config, words = subject.case, subject.config, subject.resources.overtaken
    if not words or not subject.calibration.overtaken_s:
        return None
    warps = subject.threads // WARP
    spilled_bytes = subject.threads * subject.resources.local_bytes * subject.machine.multiprocessors
    lost = 1 - kept(subject.machine, spilled_bytes)
    each = turns / planes_together(case, config) * warps * words * lost / (case.fluid_sites * config.steps)
    return Term(
        name=OVERTAKEN,
        seconds=each * held_up_s(subject, warps),
        sentence=f"{words} stores of a loop to spilled words whose load is on its way, {lost:.1%} of it from memory",
        source="compiled code; micro-benchmarks `overtaken`, `again`",
    )


def held_up_s(subject: Subject, warps: int) -> float:
    """How much longer a multiprocessor with so many warps takes for such a word than for one that is waited for."""
    measured, warps = subject.calibration.overtaken_s, max(warps, OVERTAKEN_WARPS[0])
    used, meanwhile = (
        between([(count, measured[overtaken_name(how, count)]) for count in OVERTAKEN_WARPS], warps)
        for how in OVERTAKING
    )
    return max(0.0, meanwhile - used)
