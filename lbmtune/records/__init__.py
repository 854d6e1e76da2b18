"""Records: frozen, versioned results on disk. Predicted and measured values share names and units.

They import the catalogue and errors, and nothing above.
"""

from dataclasses import fields
from typing import Any, TypeVar

from lbmtune.records.measurement import (
    Accuracy,
    AccuracyPoint,
    Conditions,
    Environment,
    Measurement,
    Sustained,
    Verification,
)
from lbmtune.records.trial import Compiled, Costs, Entry, Outcome, Prediction, Resources, Term, Trial, significant

__all__ = [
    "SCHEMA_VERSION",
    "Accuracy",
    "AccuracyPoint",
    "Compiled",
    "Conditions",
    "Costs",
    "Entry",
    "Environment",
    "Measurement",
    "Outcome",
    "Prediction",
    "Resources",
    "Sustained",
    "Term",
    "Trial",
    "Verification",
    "made_of",
    "significant",
]

T = TypeVar("T")
SCHEMA_VERSION = 5
"""2: sustained measurements; accuracy after many steps, and of finalists other than the winner. 3: miscompiled.
4: families of kernels, each with knobs of its own (`records.legacy` reads earlier ones)."""


def made_of(kind: type[T], record: object, **given: Any) -> T:
    """Return a record of a type with the fields as given, and those that another record has, too, as they are there."""
    names = (one.name for one in fields(kind))  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: getattr(record, name) for name in names if hasattr(record, name)} | given)
