"""Speed that issue slots alone allow, from the records of predictions."""

from __future__ import annotations

import re

from lbmtune.records import Prediction, Term
from lbmtune.records.terms import ISSUE


def issue_mlups(prediction: Prediction | None) -> float | None:
    """Return the speed if issue slots were the only bound; None if the record does not tell it."""
    term = next((one for one in prediction.terms if one.name == ISSUE), None) if prediction else None
    seconds = alone_s(term) if term else None
    return 1e-6 / seconds if seconds else None


def alone_s(term: Term) -> float | None:
    """Return the seconds that a term takes by itself; old records have the figure in the sentence alone."""
    said = re.search(r", ([0-9.e+-]+) ps, \d+ \w[\w ]* on their way$", term.sentence)
    return term.alone_s if term.alone_s is not None or said is None else float(said[1]) * 1e-12
