"""Records: frozen, versioned results on disk. Predicted and measured values share names and units.

They import the catalogue and errors, and nothing above.
"""

from lbmtune.records.measurement import (
    Accuracy,
    AccuracyPoint,
    Conditions,
    Environment,
    Measurement,
    Sustained,
    Verification,
)
from lbmtune.records.trial import Costs, Entry, Outcome, Prediction, Resources, Term, Trial, significant

__all__ = [
    "SCHEMA_VERSION",
    "Accuracy",
    "AccuracyPoint",
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
    "significant",
]

SCHEMA_VERSION = 4
"""2: sustained measurements; accuracy after many steps, and of finalists other than the winner. 3: miscompiled.
4: families of kernels, each with knobs of its own (`records.legacy` reads earlier ones)."""
