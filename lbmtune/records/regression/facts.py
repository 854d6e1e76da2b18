"""Comparisons of studies as JSON."""

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from lbmtune.records.regression.studies import Change, Comparison

FORMAT, VERSION = "lbmtune.comparison", 1


def facts(names: Sequence[str], found: Sequence[Comparison]) -> dict[str, Any]:
    """Return comparisons with the first study as JSON takes them. names: of all studies."""
    first, *others = names
    return {
        "format": FORMAT,
        "version": VERSION,
        "before": first,
        "after": [{"study": name, **_facts(one)} for name, one in zip(others, found, strict=True)],
        "regression": any(one.regressions for one in found),
    }


def _facts(found: Comparison) -> dict[str, Any]:
    return {
        "differences": to_builtins(found.differences),
        "between_runs": found.between,
        "between_runs_from_scatter": found.scattered,
        "winner": _change(found.winners) if found.winners else None,
        "all_kernels": {**to_builtins(found.whole), "verdict": found.whole.verdict} if found.whole else None,
        "kernels": [_change(one) for one in found.changes],
        "other_texts": found.texts,
        "regressions": list(found.regressions),
    }


def _change(one: Change) -> dict[str, Any]:
    return {**to_builtins(one), "verdict": one.verdict}
