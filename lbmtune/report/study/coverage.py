"""Coverage of a study: which part of the legal space was searched, and why each knob had no other values."""

from typing import NamedTuple

from lbmtune.catalogue.config import Scalar
from lbmtune.records.study import StudyRecord

_MOST = 12
"""Numbers that are listed; of more the first, the last and the count."""


class RangeRow(NamedTuple):
    """A range as it is shown."""

    family: str
    knob: str
    values: str
    reason: str


def covered(study: StudyRecord) -> str:
    """Return how much of the legal space was ranked and measured."""
    legal, tried = study.header.legal_configurations, len(study.trials)
    ranked = f"{legal:,} legal configurations, all ranked by the model"
    if every := study.header.drawn_from:
        ranked = f"about {every:.2g} legal configurations, of which {legal:,} were drawn and ranked by the model"
    return f"{ranked}; {tried:,} tried ({tried / max(1, every or legal):.2%})"


def range_rows(study: StudyRecord) -> list[RangeRow]:
    """Return the ranges of all knobs whose values were made for the case and the device, family after family."""
    return [RangeRow(one.family, one.knob, _listed(one.values), one.reason) for one in study.header.ranges]


def _listed(values: tuple[Scalar, ...]) -> str:
    if not values:
        return "none"
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values) > _MOST:
        return f"{min(numbers)} to {max(numbers)}, {len(numbers)} values"
    return ", ".join(map(str, values))
