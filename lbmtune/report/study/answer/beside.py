"""Kernels beside the winner: runner-up, default, the best of one step per launch, and published ones of the device."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lbmtune.catalogue.config import from_flat
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.words import words
from lbmtune.search.kinds import kind_of

_PUBLISHED = Path(__file__).with_name("published.toml")
_USUAL = {"backend", "family", "storage", "compute"}
"""Knobs that a default kernel may have otherwise: it solves the same problem in the same formats."""


@dataclass(frozen=True)
class Beside:
    """A kernel to compare the winner with. gain: the winner's speed over its; trial: None of a published one."""

    what: str
    kernel: str
    mlups: float
    gain: float
    trial: int | None = None
    source: str = ""


def beside(study: StudyRecord) -> tuple[Beside, ...]:
    """Return the kernels beside the winner that are known, each once."""
    winner, *others = study.ranked
    named = {"runner-up": others[0] if others else None}
    if not study.header.spec.kernel:
        named["best of one step per launch"] = next((t for t in study.ranked if _is_one_step(t)), None)
        named["default"] = next((t for t in study.ranked if _is_default(t)), None)
    seen = {winner.number}
    found = []
    for what, trial in named.items():
        if trial and trial.number not in seen:
            seen.add(trial.number)
            found.append(_of_trial(what, trial, winner))
    return (*found, *_published(study, winner))


def _of_trial(what: str, trial: Trial, winner: Trial) -> Beside:
    own = trial.mlups or 0.0
    return Beside(what, words(from_flat(trial.config)), own, (winner.mlups or 0.0) / own, trial.number)


def _is_one_step(trial: Trial) -> bool:
    kind = kind_of(from_flat(trial.config))
    return kind.steps == 1 and not kind.on_chip and kind.representation == "populations"


def _is_default(trial: Trial) -> bool:
    config = from_flat(trial.config)
    return config.family == "direct" and config.identity.keys() <= {*_USUAL, *config.by_device}


def _published(study: StudyRecord, winner: Trial) -> Iterator[Beside]:
    """Return published speeds of the device: of the same lattice, storage and flow, without solid cells."""
    case, device = study.header.spec.case, study.header.environment.device
    asked = {"lattice": case.lattice, "storage": winner.config.get("storage"), "flow": case.flow}
    for row in _rows():
        if device == row["device"] and not case.geometry and all(row[name] == value for name, value in asked.items()):
            gain = (winner.mlups or 0.0) / row["mlups"]
            yield Beside("published", row["kernel"], row["mlups"], gain, source=row["source"])


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    return tuple(tomllib.loads(_PUBLISHED.read_text(encoding="utf-8"))["rows"])
