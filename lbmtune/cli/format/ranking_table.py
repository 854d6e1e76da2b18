"""Print a ranking: its rows, the best of each kind of kernel, and ties of the model."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table

from lbmtune.api.grouping import others, with_scheme
from lbmtune.cli.format import output
from lbmtune.records import Prediction
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from lbmtune.api.ranking import Ranking, Row


def print_ranking(ranked: Ranking, case: str) -> None:
    """Print a table of rows, and one of kinds of kernels if there are several. case: in words."""
    rows = (
        (
            format_mlups(row.first.prediction.mlups),
            binding(row.first.prediction),
            format_bytes(row.first.prediction.footprint_bytes),
            _how_many_compiled(row),
            row.first.config.key,
            with_scheme(row.first.config) + others(row.size, row.differ),
        )
        for row in ranked.rows
    )
    title = f"{ranked.study} on {ranked.machine}: {ranked.legal:,} legal configurations\n{case}"
    columns = ("MLUPS>", "limit", "footprint>", "compiled", "key", "configuration")
    console, spare = output.stdout(), ("compiled", "footprint")
    for part in output.fitted(output.table(title, columns, rows), console.width, spare):
        console.print(part)
    if remark := ties(ranked):
        console.print(remark, markup=False)
    if len(ranked.families) > 1:
        for part in output.fitted(_families(ranked), console.width, ("legal", "compiled")):
            console.print("", part)


def _families(ranked: Ranking) -> Table:
    """Return the best of each kind of kernel beside the best of all as a table."""
    best = ranked.families[0].first.prediction.mlups
    rows = (
        (
            format_mlups(row.first.prediction.mlups),
            f"{row.first.prediction.mlups / best:.1%}",
            format_bytes(row.first.prediction.footprint_bytes),
            "yes" if row.first.compiled else "no",
            f"{row.size:,}",
            row.first.config.key,
            str(kind_of(row.first.config)),
        )
        for row in ranked.families
    )
    columns = ("MLUPS>", "of the best>", "footprint>", "compiled", "legal>", "key", "kind of kernel")
    return output.table("The best of each kind of kernel", columns, rows)


def _how_many_compiled(row: Row) -> str:
    """Return yes, no, or how many of a row are compiled."""
    if row.compiled in (0, row.size):
        return "yes" if row.compiled else "no"
    return f"{row.compiled:,} of {row.size:,}"


def ties(ranked: Ranking) -> str:
    """Return a sentence on rows of equal printed speed; empty if there are none."""
    speeds = [format_mlups(row.first.prediction.mlups) for row in ranked.rows]
    ends = [n for n, (one, next_one) in enumerate(pairwise(speeds), 1) if one != next_one]
    groups = [(first + 1, last) for first, last in pairwise([0, *ends, len(speeds)]) if last - first > 1]
    if not groups:
        return ""
    rows = ", ".join(f"{first} to {last}" for first, last in groups)
    return f"Ties: the model expects the same of rows {rows}; their order says nothing."


def binding(prediction: Prediction) -> str:
    """Return the two largest terms of a prediction, in picoseconds of the whole device."""
    return ", ".join(f"{one.name} {one.seconds * 1e12:.3g} ps" for one in prediction.terms[:2])
