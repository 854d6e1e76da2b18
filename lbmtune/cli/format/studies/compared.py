"""Print comparisons of studies."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.table import Table

from lbmtune.cli.format import output
from lbmtune.records.comparison.repeats import NOT_MEASURED, percent
from lbmtune.records.regression.ratios import Ratio, Verdict
from lbmtune.records.regression.studies import Change, Comparison
from lbmtune.records.study import StudyRecord
from lbmtune.units import format_mlups

_MOST = 10
"""Kernels that are listed."""
_COLUMNS = ("MLUPS before>", "MLUPS>", "change>", "bounds", "verdict", "measured", "key", "configuration")


def print_comparison(was: tuple[str, StudyRecord], now: tuple[str, StudyRecord], found: Comparison) -> None:
    """Print a study beside an earlier one, each with its name."""
    output.print_pairs(
        [
            ("before", _place(*was)),
            ("after", _place(*now)),
            *([("differs", "; ".join(_differences(found)))] if found.differences else []),
            ("noise", noise_text(found)),
            *([("winner", _winners(found.winners))] if found.winners else []),
            *([("all kernels", f"{_said(found.whole)}, median of {len(found.changes)}")] if found.whole else []),
            ("kernels", counts_text(found)),
        ]
    )
    if shown := _shown(found.changes):
        console = output.stdout()
        for part in output.fitted(_table(shown), console.width, ("measured", "bounds")):
            console.print("", part)


def noise_text(found: Comparison) -> str:
    """Return the spread between runs, and where it is from."""
    if found.between is None:
        return f"{NOT_MEASURED}; no verdicts (lbmtune devices --calibrate measures it for later studies)"
    of = (
        "scatter of the kernels that both measured: neither study measured it" if found.scattered else "90 % of repeats"
    )
    return f"+-{percent(found.between)} between runs ({of})"


def counts_text(found: Comparison) -> str:
    """Return how many of the kernels that both measured are faster, slower or the same."""
    if not found.changes:
        return "none that both studies measured"
    counted = Counter(one.verdict for one in found.changes)
    texts = f"; {found.texts} with another text" if found.texts else ""
    listed = ", ".join(f"{counted[one]} {one}" for one in Verdict if counted[one])
    return f"{len(found.changes)} that both studies measured: {listed}{texts}"


def _place(name: str, record: StudyRecord) -> str:
    header = record.header
    return f"{name}, {header.environment.device}, {header.date[:10]}, lbmtune {header.version}"


def _differences(found: Comparison) -> Iterator[str]:
    for one in found.differences:
        yield f"{one.name} {one.was or 'unknown'} -> {one.now or 'unknown'}"


def _said(ratio: Ratio) -> str:
    words = {Verdict.SAME: "the same within the noise", Verdict.UNKNOWN: "no verdict"}
    return f"{ratio}: {words.get(ratio.verdict, str(ratio.verdict))}"


def _winners(one: Change) -> str:
    kernels = one.key if one.key == one.was_key else f"{one.was_key} -> {one.key}"
    disturbed = ", disturbed" if one.disturbed else ""
    return (
        f"{format_mlups(one.was_mlups)} -> {format_mlups(one.mlups)} MLUPS, {_said(one.ratio)} ({kernels}{disturbed})"
    )


def _shown(changes: Sequence[Change]) -> list[Change]:
    """Return the kernels to list: those that count, then those that changed, the largest changes first."""
    changed = [one for one in changes if one.counts or one.verdict in (Verdict.SLOWER, Verdict.FASTER)]
    return sorted(changed, key=lambda one: (not one.counts, -abs(one.ratio.ratio - 1)))[:_MOST]


def _table(changes: Sequence[Change]) -> Table:
    rows = (
        (
            format_mlups(one.was_mlups),
            format_mlups(one.mlups),
            str(one.ratio).partition(" (")[0],
            str(one.ratio).partition(" (")[2].rstrip(")"),
            f"{one.verdict}{' disturbed' if one.disturbed else ''}",
            "finals" if one.counts else "once each",
            one.key,
            output.short(one.configuration),
        )
        for one in changes
    )
    return output.table("kernels that both studies measured", _COLUMNS, rows)
