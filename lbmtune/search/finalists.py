"""Finalists of a study: verified at full size and measured again.

They are the best of all and the best of each kind that a user would compare, so that both sides of a statement such as
"in place as fast as with two lattices, in half the memory" rest on finals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.search.kinds import Kind, kind_of

NEAR = 0.95
"""Share of the best speed from which a kind has a final, because first measurements may rank closer ones wrongly."""


def finalists_of(record: StudyRecord) -> tuple[Trial, ...]:
    """Return the finalists by their first measurements, best first, without finals; `stands_for` names what each leads.

    They are the best of all, up to the number in the protocol and at least one; the best of each set of requirements;
    and the best of each kind that comes near the best. If footprint is the objective, they are the best of all alone.
    """
    first = replace(record, trials=tuple(replace(t, final=None, verification=None) for t in record.trials))
    ranked = first.ranked
    best = {trial.number for trial in ranked[: max(1, record.header.spec.protocol.finalists)]}
    leaders = _leaders(ranked) if record.header.spec.objective == "mlups" else {}
    by_number = {trial.number: trial for trial in record.trials}
    return tuple(
        replace(by_number[trial.number], final=None, stands_for=str(leaders.get(trial.number, "")))
        for trial in ranked
        if trial.number in best or trial.number in leaders
    )


def _leaders(ranked: tuple[Trial, ...]) -> Mapping[int, Kind]:
    """Return the kinds that are near the best or first of their requirements, by number of the trial that leads."""
    leaders: dict[int, Kind] = {}
    kinds: set[Kind] = set()
    requirements: set[object] = set()
    for trial in ranked:
        kind = kind_of(from_flat(trial.config))
        near = (trial.mlups or 0.0) >= NEAR * (ranked[0].mlups or 0.0)
        if kind.requirements not in requirements or (near and kind not in kinds):
            leaders[trial.number] = kind
        kinds.add(kind)
        requirements.add(kind.requirements)
    return leaders
