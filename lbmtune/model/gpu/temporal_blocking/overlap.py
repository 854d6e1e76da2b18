"""Overlap in temporal blocking: planes queue for memory and for what is computed, and wait for a load.

How much of it overlaps follows from how many planes are in flight (`model.gpu.terms.mva`). Within a stage warps hide
instructions and exchanges behind each other; with several steps, stages also wait for what their warps exchange.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking, planes_together
from lbmtune.catalogue.limits import SCHEDULERS
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.inputs import warps_of
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.terms.mva import Shares, shares
from lbmtune.records import Term
from lbmtune.records.terms import LATENCY, STAGES

_PLANES, _LATE = 5, 2
"""Planes in flight with several steps; and if the next one is loaded in the last stage: that one and the present one.

From 1968 kernels without a lattice on an H200, which no calibration has (`docs/design/gpu.md`): stages without memory,
planes without stages, and both together, which take as long as `mva.shares` says of that many planes. Where
compilers place the loads is counted (`loads_late`)."""
_FLAT = 3
"""Planes in flight in two dimensions without synchronisation, besides one in the stages of each block; neither
measured nor counted."""


def planes_in_flight(case: Case, config: TemporalBlocking, together: int) -> int:
    """Return the planes of a multiprocessor that are in work at the same time.

    With one step per launch each block has one in its stage, and one more is being read. With several steps and none
    read ahead, each block has one, which is being read or in the stages.
    """
    if config.steps == 1:
        return together + 1
    if config.plane_fetch == "none":
        return together
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
    return config.plane_fetch == "registers" and config.steps > 1 and not held


def planes_wait(inputs: TemporalInputs) -> Term:
    """Return the time of planes that each wait for the one before: at least the latency of a load.

    Source: `Calibration.latency_s`, from memory.
    """
    turns, planes = inputs.waves, inputs.planes
    seconds = turns * planes * inputs.calibration.latency_s / (inputs.updates * inputs.config.steps)
    return Term(LATENCY, seconds, f"{turns} x {planes:.4g} planes, one after the other", "micro-benchmark `latency`")


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
    inside, customers = stages(case, config, [one.seconds for one in computed], together, stages_s, 0.0)
    both = replace(computed[0], seconds=inside.total)
    memory, both, *waited = _queueing([memory, both], waits, planes, together)
    taken = both.seconds / inside.total
    parts = [_shared(one, taken * share, customers) for one, share in zip(computed, inside.stations, strict=True)]
    if stages_s:
        sentence = f"stages wait for what warps exchange, {stages_s * 1e12:.3g} ps if nothing hides it"
        seconds, source = taken * inside.delay, "micro-benchmark `stages`"
        parts.append(Term(STAGES, seconds, sentence, source))
    return [memory, *parts, *waited]


def stages(
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
    return found, f"{on_each} warps per scheduler"


def _queueing(stations: Sequence[Term], waits: Sequence[Term], planes: int, together: int) -> list[Term]:
    """Return terms with the time that planes spend at each, by mean value analysis."""
    found = shares([one.seconds for one in stations], together * sum(one.seconds for one in waits), planes)
    taken = [*zip(stations, found.stations, strict=True), *((one, found.delay) for one in waits)]
    return [_shared(one, seconds, f"{planes} planes") for one, seconds in taken]


def _shared(term: Term, seconds: float, customers: str) -> Term:
    sentence = f"{term.sentence}, {term.seconds * 1e12:.3g} ps alone, {customers} in flight"
    return replace(term, seconds=seconds, sentence=sentence, alone_s=term.seconds)
