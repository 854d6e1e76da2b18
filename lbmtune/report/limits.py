"""The limits of a kernel: the speed that each resource would allow it by itself, and the one that binds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import from_flat
from lbmtune.records import Term, Trial
from lbmtune.records.remarks import left_alone
from lbmtune.records.study import CEILING_STREAMS, StudyRecord
from lbmtune.records.terms import MEMORY
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_mlups, format_rate

_BY_MODEL = "by the model"


class Roof(NamedTuple):
    """A measured bandwidth."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True)
class Limit:
    """A bound of a kernel's speed. mlups: what it allows if nothing else took time; source: where that comes from."""

    name: str
    mlups: float
    source: str

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


def alone_s(term: Term) -> float | None:
    """Return the seconds that a term takes by itself; old records have the figure in the sentence alone."""
    said = re.search(r", ([0-9.e+-]+) ps, \d+ \w[\w ]* on their way$", term.sentence)
    return term.alone_s if term.alone_s is not None or said is None else float(said[1]) * 1e-12


def stream_name(width: str) -> str:
    """Name a many-stream bandwidth by its key: "16" is the bytes of an access, "64 streaming" those of a store."""
    size, _, kind = width.partition(" ")
    return f"{CEILING_STREAMS}-stream copy, {size}-byte {kind or 'access'}"


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
    """Return the limit that binds a verified trial: the lowest; None if none is known."""
    return next(iter(limits_of(study, trial)), None)


def _of_memory(study: StudyRecord, trial: Trial) -> Limit | None:
    """Return what the measured ceiling allows; None if memory does not bound the kernel, or the ceiling is disturbed.

    The state of a kernel on chip, and one that the last-level cache holds, hardly crosses the memory bus.
    """
    fits = trial.prediction and 0 < trial.prediction.footprint_bytes <= study.header.last_cache_bytes
    if fits or kind_of(from_flat(trial.config)).on_chip or not left_alone(study.header.ceiling.cpu_share):
        return None
    ceiling = ceiling_of(study)
    allowed = ceiling.bytes_per_s / trial.best_measurement.bytes_per_update / 1e6
    return Limit(MEMORY, allowed, f"{ceiling.name}, {format_rate(ceiling.bytes_per_s)}, measured here")


def _of_terms(trial: Trial) -> Iterator[Limit]:
    """Return what the terms of the prediction allow alone; of terms that overlap only those whose own time is known."""
    terms = trial.prediction.significant_terms if trial.prediction else ()
    config = from_flat(trial.config)
    adds_up = kind_of(config).on_chip or not BACKENDS[config.backend].overlaps_memory
    for term in terms:
        seconds = _own_s(term, adds_up=adds_up)
        if seconds and seconds > 0:
            yield Limit(term.name, 1e-6 / seconds, f"{_BY_MODEL}: {term.figures}")


def _own_s(term: Term, *, adds_up: bool) -> float | None:
    own = alone_s(term)
    return term.seconds if own is None and adds_up else own
