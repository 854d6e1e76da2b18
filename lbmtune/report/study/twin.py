"""The machine-readable twin of a page: what its first screen says, as JSON with a version."""

from dataclasses import asdict
from typing import Any

from lbmtune.records.profile import Profile
from lbmtune.records.study import StudyRecord
from lbmtune.report.limits import limits_of
from lbmtune.report.study.answer.beside import beside
from lbmtune.report.study.answer.update_time import parts
from lbmtune.report.study.answer.verdict import title

FORMAT, VERSION = "lbmtune.report", 2
TRIALS = "trial-data"
"""Element of the page with all trials: base64 of gzip of JSON."""


def twin(study: StudyRecord, profile: Profile | None = None) -> dict[str, Any]:
    """Return the answer of a study as plain values: speeds in MLUPS, times in seconds, shares from 0 to 1.

    profile: of the winner.
    """
    header = study.header
    return {
        "format": FORMAT,
        "version": VERSION,
        "lbmtune": header.version,
        "study": header.spec.name,
        "date": header.date,
        "device": header.environment.device,
        "case": asdict(header.spec.case),
        "title": title(study),
        "winner": _winner(study, profile) if study.ranked else None,
        "trials": {"element": TRIALS, "encoding": "base64 of gzip of JSON", "count": len(study.trials)},
    }


def _winner(study: StudyRecord, profile: Profile | None) -> dict[str, Any]:
    winner = study.ranked[0]
    interval, run = study.interval(winner), winner.sustained
    return {
        "trial": winner.number,
        "key": winner.key,
        "config": winner.config,
        "mlups": winner.mlups,
        "interval_mlups": [interval.low_mlups, interval.high_mlups],
        "sustained_mlups": run.mlups if run else None,
        "nj_per_update": run.nj_per_update if run else None,
        "tied": sorted(study.tied),
        "limits": [asdict(one) for one in limits_of(study, winner)],
        "beside": [asdict(one) for one in beside(study)],
        "time_of_an_update": [asdict(one) for one in parts(study)],
        "levels": {one.name: one.seconds for one in profile.rungs} if profile else None,
    }
