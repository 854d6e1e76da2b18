"""What the issue of instructions allows by itself, as records of predictions tell it."""

from __future__ import annotations

import re

from lbmtune.records import Prediction, Term
from lbmtune.records.terms import ISSUE


def issue_mlups(predicted: Prediction | None) -> float | None:
    """The speed at which nothing but the issue of instructions would bind; None where no record tells it."""
    found = next((one for one in predicted.terms if one.name == ISSUE), None) if predicted else None
    seconds = alone_s(found) if found else None
    return 1e-6 / seconds if seconds else None


def alone_s(term: Term) -> float | None:
    """What a term takes by itself; of records that have no such figure, from their words."""
    said = re.search(r", ([0-9.e+-]+) ps, \d+ \w[\w ]* on their way$", term.sentence)
    return term.alone_s if term.alone_s is not None or said is None else float(said[1]) * 1e-12
