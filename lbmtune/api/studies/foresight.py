"""A study in advance: its space, its time and its place, with nothing run and nothing measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from lbmtune.api.machines.devices import bounds, chosen
from lbmtune.api.studies.run import asked_parts, asked_sources, check_begins
from lbmtune.backend.registry import backend_of
from lbmtune.records.parts import PartsAsked
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import read_study
from lbmtune.search.clock import Clock, Needs, now
from lbmtune.search.plan import Plan
from lbmtune.search.spaces.bounds import legal_of


@dataclass(frozen=True)
class Foreseen:
    """A study before it begins.

    families: legal configurations of each; illegal: points of the space that break a rule; done: trials that the folder
    holds already; limits_known: the device is here, so that its limits hold; times_s: seconds of each part, infinite
    for a search without a limit of time, as planned before anything is measured.
    """

    spec: StudySpec
    device: str
    folder: Path
    families: Mapping[str, int]
    illegal: int
    done: int
    limits_known: bool
    times_s: Mapping[str, float]

    @property
    def legal(self) -> int:
        """Return the number of legal configurations."""
        return sum(self.families.values())

    def facts(self) -> dict[str, Any]:
        """Return plain data; seconds without a limit are None."""
        spec = self.spec
        return {
            "study": str(self.folder),
            "name": spec.name,
            "case": spec.case,
            "device": self.device,
            "limits_of_device": self.limits_known,
            "legal_configurations": self.legal,
            "families": dict(self.families),
            "illegal_configurations": self.illegal,
            "objectives": spec.objectives,
            "strategy": spec.strategy,
            "budget": spec.budget,
            "trials_done": self.done,
            "times_s": {name: None if seconds == inf else seconds for name, seconds in self.times_s.items()},
        }


def foreseen(
    spec: StudySpec,
    device: str | None,
    folder: Path,
    *,
    resume: bool = False,
    parts: PartsAsked | None = None,
    sources: Sequence[Path | str] | None = None,
) -> Foreseen:
    """Return what a study would do in a folder, of the arguments of `study`.

    Raises InputError where that does before it measures.
    """
    where = chosen(device)
    check_begins(spec, where, folder, resume=resume)
    asked_parts(parts, spec, folder, resume=resume)
    asked_sources(sources, spec, where, folder, resume=resume)
    here, backend = bounds(where), backend_of(where)
    space = legal_of(spec, backend, here.limits)
    families = Counter(config.family for config in space.configs)
    done = len(read_study(folder).trials) if resume else 0
    return Foreseen(
        spec,
        where,
        folder,
        dict(families.most_common()),
        sum(space.illegal.values()),
        done,
        here.known,
        planned_s(spec, backend),
    )


def planned_s(spec: StudySpec, backend: str) -> dict[str, float]:
    """Return the seconds of search, finals, what follows and files, as a study plans them when it begins."""
    plan = Plan(Clock(now(), spec.budget.seconds or inf), Needs(spec, backend))
    search_s = max(0.0, min(plan.search_left_s(), spec.budget.search_seconds or inf))
    return {"search": search_s, "finals": plan.races_s, **plan.later, "files": plan.needs.files_s}
