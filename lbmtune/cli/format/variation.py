"""Print the predictions for each value of a knob."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbmtune.catalogue.config import Scalar, backend_knobs
from lbmtune.cli.format import output
from lbmtune.cli.format.ranking_table import binding
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from lbmtune.api.variation import Variation

_BAR = 12
"""Characters of the longest bar."""


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
