"""Bring best.json and the pages of recorded sets to predictions of today's model, dated; nothing is measured.

    python -m scripts.recorded.renew_predictions [FOLDER] [--date 2026-11-26] [--pages reports]

The kernels are predicted with their compiled resources, on the machine of the sets beside them, at the rates beside
their samples, as `scripts.recorded.model_report` does. In best.json the prediction alone changes; trials keep those
that the study was searched by. A page is made again where the folder of pages has one of the set, with the recorded
profile of its winner, if there is one.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import msgspec

from lbmtune.api.studies.results import beyond
from lbmtune.catalogue.config import from_flat
from lbmtune.model.loss_breakdown import expected
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records import Prediction, Trial
from lbmtune.records.comparison.statistics import relative_error
from lbmtune.records.profile import Profile
from lbmtune.records.store import decoded, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER, write_atomically
from lbmtune.report.study.page import write_report
from scripts.paths import RECORDED, ROOT
from scripts.recorded.host_interference import under_conditions

BEST = "best.json"


def predicted(study: StudyRecord, machine: Machine, trial: Trial, date: str) -> Prediction:
    """Return today's prediction of a verified trial."""
    then = under_conditions(machine, trial.best_measurement.conditions)
    found = predict(study.header.spec.case, from_flat(trial.config), then, trial.resources)
    return replace(found, date=date)


def renewed(study: StudyRecord, machine: Machine, date: str) -> StudyRecord:
    """Return a study with today's predictions of its verified trials."""
    verified = {trial.number for trial in study.ranked}
    trials = (
        replace(trial, prediction=predicted(study, machine, trial, date)) if trial.number in verified else trial
        for trial in study.trials
    )
    return replace(study, trials=tuple(trials))


def with_prediction(content: bytes, prediction: Prediction) -> bytes:
    """Return a best.json with another prediction, and all else as it was."""
    values = msgspec.json.decode(content)
    values["prediction"] = prediction
    return msgspec.json.format(msgspec.json.encode(values)) + b"\n"


def profile_of(key: str, card: Path, machine: Machine) -> Profile | None:
    """Return the recorded profile of a kernel on a card, with today's predictions; None without one."""
    found = (decoded(path.read_bytes(), Profile) for path in sorted(card.glob("profiles/*.json")))
    return next((expected(one, machine) for one in found if one.key == key), None)


def renew(folder: Path, date: str, pages: Path) -> str:
    """Renew best.json of a set, and its page if there is one; return the errors of the winner and of all as text."""
    before, machine = read_study(folder), read_machine(folder.parent / "machine.toml")
    page = pages / folder.parent.name / f"{folder.name}.html"
    best, name = before.ranked[0], f"{folder.parent.name}/{folder.name}"
    now = renewed(before, machine, date) if page.exists() else before
    winner = predicted(before, machine, best, date)
    path = folder / BEST
    write_atomically(path, with_prediction(path.read_bytes(), winner))
    was = f"{best.prediction.mlups:,.0f}" if best.prediction else "none"
    told = f"{name}: winner {best.mlups:,.0f} MLUPS, predicted {was} then, {winner.mlups:,.0f} now"
    if not page.exists():
        return told
    shown = beyond(now, profile_of(best.key, folder.parent, machine))
    write_report(now, page, replace(shown, best=path.read_bytes()))
    errors = (_error(one) for one in (before, now))
    return f"{told}; median error of all {' then, '.join(f'{error:.1%}' for error in errors)} now"


def _error(study: StudyRecord) -> float:
    return median(relative_error(t.prediction.mlups, t.mlups) for t in study.ranked if t.prediction and t.mlups)


def main(arguments: Sequence[str] | None = None) -> None:
    """Renew every set below a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=RECORDED)
    parser.add_argument("--date", default=datetime.now(UTC).date().isoformat(), help="default: today")
    parser.add_argument("--pages", type=Path, default=ROOT / "reports", help="default: reports")
    given = parser.parse_args(arguments)
    folders = sorted(path.parent for path in given.folder.rglob(BEST) if (path.parent / HEADER).exists())
    with ProcessPoolExecutor() as pool:
        for told in pool.map(partial(renew, date=given.date, pages=given.pages), folders):
            print(told, flush=True)


if __name__ == "__main__":
    main()
