"""Print a ranking of kernels, and the predictions for each value of a knob."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table

from lbmtune.api.predicted.grouping import others, with_scheme
from lbmtune.catalogue.config import Scalar, backend_knobs
from lbmtune.cli.format import output
from lbmtune.records import Prediction
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from lbmtune.api.predicted.ranking import Entry, Ranking, Row
    from lbmtune.api.predicted.variation import Variation

_BAR = 12
"""Characters of the longest bar."""


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


def _how_many_compiled(row: Row[Entry]) -> str:
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


def single_value(found: Variation, *, has_record: bool) -> str:
    """Return a sentence on how to add values if the knob has one only; else an empty text.

    has_record: the configuration comes from a file or a study, whose case --set cannot change.
    """
    values = [*found.predictions, *found.illegal]
    if len(values) > 1:
        return ""
    knob = backend_knobs(found.around.backend)[found.knob]
    others = [value for value in (*knob.search, *knob.allowed) if value not in values]
    more = f"--set {knob.name}={','.join(map(str, [*values, *dict.fromkeys(others)][:3])) if others else 'A,B,C'}"
    how = f"add others with {more}"
    if has_record:
        how = f"beside a best.json name a study that has others with --study, or give knob=value,... and {more}"
    return f"only the values of the study are compared, and it gives {knob.name} none but {values[0]}; {how}."


def print_variation(found: Variation, title: str) -> None:
    """Print a table with a bar as long as the speed; a star marks the value of the configuration."""
    best = max((one.mlups for one in found.predictions.values()), default=1.0)
    here = found.around.flat()[found.knob]
    rows = [
        (_marked(value, here), format_mlups(one.mlups), "#" * round(_BAR * one.mlups / best), binding(one))
        for value, one in found.predictions.items()
    ]
    rows += [(str(value), "-", "", f"illegal: {reason}") for value, reason in found.illegal.items()]
    output.stdout().print(output.table(title, (found.knob, "MLUPS>", "", "limit"), rows))


def _marked(value: Scalar, here: Scalar) -> str:
    return f"{value} *" if value == here else str(value)
