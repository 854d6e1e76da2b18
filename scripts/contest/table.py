"""The kept results of the contest, and what they say."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

from scripts.contest.score import COLUMNS, Score
from scripts.paths import ROOT

RESULTS = ROOT / "docs" / "design" / "search-contest.csv"
Results = Mapping[tuple[str, str, str], Score]


def kept(path: Path = RESULTS) -> Results:
    """Return the kept scores by set, strategy and start."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        scores = [_score(row) for row in csv.DictReader(file)]
    return {one.key: one for one in scores}


def text(scores: Iterable[Score]) -> str:
    """Return scores as CSV, sorted."""
    out = StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(one.row() for one in sorted(scores, key=lambda one: one.key))
    return out.getvalue()


def _score(row: Mapping[str, str]) -> Score:
    types = get_type_hints(Score)
    return Score(**{name: _value(types[name], row[name]) for name in COLUMNS})


def _value(kind: Any, given: str) -> Any:
    if isinstance(kind, UnionType):
        return _value(get_args(kind)[0], given) if given else None
    return kind(given)


def of(results: Results, strategy: str, start: str, sets: Sequence[str]) -> list[Score]:
    """Return the scores of a strategy on some sets, as far as it played them."""
    return [results[key] for name in sets if (key := (name, strategy, start)) in results]
