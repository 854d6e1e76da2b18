"""The limits of a kernel: the speed that each resource would allow it by itself, and the one that binds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records import Term, Trial
from lbmtune.records.header import CEILING_STREAMS
from lbmtune.records.profile import KERNEL, STREAMING, STREAMS, Profile
from lbmtune.records.remarks import left_alone, profile_disturbance
from lbmtune.records.study import StudyRecord, once
from lbmtune.records.terms import MEMORY
from lbmtune.units import format_mlups, format_rate

_BY_MODEL = "by the model"
MUCH = 0.1
"""Share by which a kernel has to exceed what the model takes to make that doubtful."""
_AGREE = 0.005
"""Share up to which a speed above the benchmark is the benchmark's."""


class Roof(NamedTuple):
    """A measured bandwidth."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True)
class Limit:
    """A bound of a kernel's speed. mlups: what it allows if nothing else took time; source: where that comes from.

    exceeded: share by which a kernel of the study was faster than it, so that it is a benchmark and no bound; else 0.
    """

    name: str
    mlups: float
    source: str
    exceeded: float = 0.0

    @property
    def refuted(self) -> bool:
        """Return whether a kernel exceeded a limit of the model so far that it says nothing of that kernel."""
        return not self.measured and self.exceeded > MUCH

    @property
    def label(self) -> str:
        """Name it in a figure of the winner's study."""
        if not self.exceeded:
            return f"limit of the winner, {self.name}"
        return f"{self.said if self.measured else self.name}{exceeded_text(self.exceeded)}"

    @property
    def exceeded_said(self) -> str:
        """Say by what and how far it was exceeded; empty if it was not."""
        if self.measured or not self.exceeded:
            return exceeded_text(self.exceeded)
        return f", exceeded by {self.exceeded:.0%} by this kernel itself"

    @property
    def said(self) -> str:
        """Name what was exceeded: the benchmark that was measured, or the limit by the model."""
        return f"{self.name} {'benchmark' if self.measured else 'limit of the model'}"

    @property
    def measured(self) -> bool:
        """Return whether it is the measured ceiling, with the bytes of the kernel; else a term of the model."""
        return not self.source.startswith(_BY_MODEL)


def roofs_of(study: StudyRecord) -> tuple[Roof, ...]:
    """Return the measured bandwidths."""
    ceiling = study.header.ceiling
    streams = (Roof(stream_name(width), rate) for width, rate in ceiling.stream_bytes_per_s.items())
    return (
        Roof("update in place", ceiling.in_place_bytes_per_s),
        *streams,
        Roof("copy of one array", ceiling.copy_bytes_per_s),
    )


def ceiling_of(study: StudyRecord) -> Roof:
    """Return the roof that shares refer to."""
    best = study.header.ceiling.best_bytes_per_s
    return next(roof for roof in roofs_of(study) if roof.bytes_per_s == best)


@once
def exceeded(study: StudyRecord) -> float:
    """Return by what share a kernel was faster than the ceiling in any measurement, search included; 0 if none was.

    The ceiling is no bound of a kernel that a cache holds.
    """
    ceiling = study.header.ceiling.best_bytes_per_s
    found = ((_highest(trial) / ceiling - 1, trial) for trial in study.ranked)
    return max((share for share, trial in found if share > _AGREE and _crosses_memory(study, trial)), default=0.0)


def fastest_on_memory(study: StudyRecord) -> Trial | None:
    """Return the finalist that drew most from memory; None if no finalist's state has to cross the memory bus."""
    found = [trial for trial in study.ranked if trial.final and _crosses_memory(study, trial)]
    return max(found, key=lambda one: one.best_measurement.bandwidth_bytes_per_s, default=None)


def exceeded_text(share: float) -> str:
    """Say that kernels exceeded a benchmark, after its name; empty if none did."""
    return f", exceeded by up to {share:.0%}" if share else ""


def _highest(trial: Trial) -> float:
    """Return the highest bandwidth of a verified trial, of search or finals."""
    return max(one.bandwidth_bytes_per_s for one in (trial.measurement, trial.best_measurement) if one)


def alone_s(term: Term) -> float | None:
    """Return the seconds that a term takes by itself; old records have the figure in the sentence alone."""
    said = re.search(r", ([0-9.e+-]+) ps, \d+ \w[\w ]* on their way$", term.sentence)
    return term.alone_s if term.alone_s is not None or said is None else float(said[1]) * 1e-12


def stream_name(width: str) -> str:
    """Name a many-stream bandwidth by its key: "16" is the bytes of an access, "64 streaming" those of a store."""
    size, _, kind = width.partition(" ")
    return f"{CEILING_STREAMS}-stream copy, {size}-byte {kind or 'access'}"


def figures_of(term: Term) -> str:
    """Return the figures of a term without the seconds that it takes by itself, which have their own column."""
    return re.sub(r", [0-9.e+-]+ ps alone", "", term.figures)


def limits_of(study: StudyRecord, trial: Trial) -> tuple[Limit, ...]:
    """Return the known limits of a verified trial, the lowest first."""
    found = {one.name: one for one in _of_terms(trial)}
    if memory := _of_memory(study, trial):
        found[MEMORY] = min(memory, found.get(MEMORY, memory), key=lambda one: one.mlups)
    return tuple(sorted(found.values(), key=lambda one: one.mlups))


def limits_text(study: StudyRecord, limits: Sequence[Limit]) -> str:
    """Name limits with the speed that each allows."""
    allowed = ", ".join(f"{one.name} {format_mlups(one.mlups)}" for one in limits)
    return f"{allowed} {study.header.spec.case.speed_unit}"


def binding(study: StudyRecord, trial: Trial) -> Limit | None:
    """Return the limit that binds a verified trial: the lowest; None if none is known.

    If the trial refutes that one, it is what memory was measured to allow, unless the trial exceeds that, too.
    """
    lowest = next(iter(limits_of(study, trial)), None)
    if lowest is None or not lowest.refuted:
        return lowest
    memory = _of_memory(study, trial)
    return memory if memory and (trial.mlups or 0.0) < memory.mlups else lowest


def refuted_text(study: StudyRecord, trial: Trial) -> str:
    """Say that a trial exceeded its lowest limit by the model, if another one is taken to bind it; else empty."""
    lowest = next(iter(limits_of(study, trial)), None)
    if lowest is None or not lowest.refuted or lowest == binding(study, trial):
        return ""
    return (
        f"; {lowest.name} by the model, {format_mlups(lowest.mlups)}, is exceeded by {share_beyond(lowest, trial):.0%}"
    )


def share_beyond(limit: Limit, trial: Trial) -> float:
    """Return by what share a trial exceeds a limit in bursts, or else over seconds."""
    in_bursts = (trial.mlups or 0.0) / limit.mlups - 1
    return in_bursts if in_bursts > _AGREE else limit.exceeded


def contradicted(limit: Limit | None, profile: Profile | None) -> bool:
    """Return whether a profile shows that another resource than that of a limit by the model may bind.

    The model divides the time between streaming and collision otherwise than was measured.
    """
    if limit is None or profile is None or limit.measured or limit.name == MEMORY or profile_disturbance(profile):
        return False
    return off_by(profile) > MUCH


def off_by(profile: Profile) -> float:
    """Return by how much the model is off in what a level adds, as a share of the kernel's time; 0 if it is unknown."""
    levels = [profile.rung(name) for name in (STREAMS, STREAMING, KERNEL)]
    added = [
        (below.seconds - above.seconds, below.model_s - above.model_s)
        for above, below in pairwise(levels)
        if above.model_s and below.model_s
    ]
    return max((abs(measured - model) for measured, model in added), default=0.0) / levels[-1].seconds


def _of_memory(study: StudyRecord, trial: Trial) -> Limit | None:
    """Return what the ceiling allows; None if memory does not bound the kernel, or the ceiling is disturbed."""
    if not left_alone(study.header.ceiling.cpu_share) or not _crosses_memory(study, trial):
        return None
    ceiling = ceiling_of(study)
    allowed = ceiling.bytes_per_s / trial.best_measurement.bytes_per_update / 1e6
    source = f"{ceiling.name}, {format_rate(ceiling.bytes_per_s)}, measured by this study"
    return Limit(MEMORY, allowed, source, exceeded(study))


def _crosses_memory(study: StudyRecord, trial: Trial) -> bool:
    """Return whether the state crosses the memory bus: one on chip, or held by the last-level cache, hardly does."""
    fits = trial.prediction and 0 < trial.prediction.footprint_bytes <= study.header.last_cache_bytes
    return not fits and not trial.kernel_config.on_chip


def _of_terms(trial: Trial) -> Iterator[Limit]:
    """Return what the terms of the prediction allow alone; of terms that overlap only those whose own time is known."""
    terms = trial.prediction.significant_terms if trial.prediction else ()
    config = trial.kernel_config
    adds_up = config.on_chip or not BACKENDS[config.backend].overlaps_memory
    for term in terms:
        seconds = _own_s(term, adds_up=adds_up)
        if seconds and seconds > 0:
            yield Limit(term.name, 1e-6 / seconds, f"{_BY_MODEL}: {figures_of(term)}", _beyond(trial, 1e-6 / seconds))


def _beyond(trial: Trial, mlups: float) -> float:
    """Return by what share a trial was faster in bursts or over seconds than a limit by the model; 0 if it was not."""
    run = trial.sustained
    highest = max(trial.best_measurement.mlups, run.mlups if run and not run.disturbed else 0.0)
    return max(highest / mlups - 1, 0.0) if highest > (1 + _AGREE) * mlups else 0.0


def _own_s(term: Term, *, adds_up: bool) -> float | None:
    own = alone_s(term)
    return term.seconds if own is None and adds_up else own
