"""Observations of the search: one for each trial."""

from lbmtune.records import Outcome, Trial
from lbmtune.search.interfaces import Seen

_UNKNOWN = (Outcome.UNSTABLE_TIMING, Outcome.TIMED_OUT)
"""Outcomes that a busy machine causes, too."""
_DOUBTFUL = 5.0
"""How much wider the noise of a disturbed or dismissed measurement is than its interval says."""
_LEAST = 0.002
"""Standard deviation between runs that no interval of a single run shows (a median of 0.24 % between two runs:
studies/recorded/nvidia-h100/pairs.jsonl.gz)."""
_WIDTH = 1.96
"""Half a 95 % interval in standard deviations."""


def seen_of(trial: Trial, between_runs: float = _LEAST) -> Seen:
    """Return what a trial says of its configuration. between_runs: standard deviation of log MLUPS between runs."""
    if trial.outcome in _UNKNOWN:
        return Seen(None, known=False)
    if trial.mlups is None:
        return Seen(None)
    one = trial.best_measurement
    within = (one.ci_high_mlups - one.ci_low_mlups) / 2 / one.mlups / _WIDTH
    return Seen(one.mlups, max(within * (_DOUBTFUL if one.disturbed or one.dismissed else 1.0), between_runs))
