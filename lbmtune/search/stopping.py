"""The end of a search: nothing is left to gain, or a speed is reached that was asked for."""

from dataclasses import dataclass, field

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.records import Trial
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.comparison.statistics import repeat_spread
from lbmtune.records.header import StudyHeader
from lbmtune.records.remarks import left_alone, predictions_hold
from lbmtune.search.interfaces import DOUBT, Gain

_LOOKS, _GROWTH = 3, 2.0
"""Looks in a row that must agree that nothing is left to gain, and by how much the trials must grow meanwhile: what was
learned of a few kernels is judged by as many others."""
_NOISE, _NOISE_OF_HOST = 0.002, 0.01
"""Noise of finals, relative, of a machine whose repeats are not known, and of one that others may use."""


def noise_of(header: StudyHeader) -> float:
    """Return how far repeated finals lie apart on the machine of a study, relative."""
    usual = _NOISE_OF_HOST if BACKENDS[header.backend].shares_host else _NOISE
    return repeat_spread(header.repeats) or usual


def unreliable_target(header: StudyHeader) -> str:
    """Return why the target of a study is never reached: other programs disturbed what it is a share of; else ''."""
    target, (bandwidths, calibration) = header.spec.budget.target, header.cpu_shares
    if target is None:
        return ""
    if predictions_hold(bandwidths, calibration) if target.of == "prediction" else left_alone(bandwidths):
        return ""
    return (
        f"the search does not end at {target.share:.0%} of the {target.of}, which is not reliable: other programs used "
        "the processor while the machine was described."
    )


def enough(gain: Gain, noise: float) -> bool:
    """Return whether so little is left to gain that no finals could tell."""
    return gain.relative < noise and gain.probability <= DOUBT


@dataclass
class Looks:
    """Looks in a row that saw nothing left to gain. since: trials at the first of them."""

    count: int = 0
    since: int = 0

    def agree(self, gain: Gain, noise: float, trials: int) -> bool:
        """Note what one saw after some trials; return whether the looks are enough, and far enough apart."""
        self.since = self.since if self.count else trials
        self.count = self.count + 1 if enough(gain, noise) else 0
        return self.count >= _LOOKS and trials >= _GROWTH * self.since


@dataclass
class Stop:
    """Decides if a search has done enough. reason: why, or empty; looks: what was seen of the gain that is left.

    A study that samples its space, to record a set, makes all its trials.
    """

    header: StudyHeader
    noise: float
    reason: str = ""
    looks: Looks = field(default_factory=Looks)

    def look(self, gain: Gain | None, trials: int) -> None:
        """Note what may be gained by going on after some trials."""
        if gain is None or self.header.spec.budget.sample:
            return
        if self.looks.agree(gain, self.noise, trials):
            self.reason = f"{percent(max(gain.relative, 0.0))} left to gain at 95 %"

    def measured(self, trial: Trial, predicted_mlups: float) -> None:
        """Compare a speed with the target of the study. predicted_mlups: of what the model puts first."""
        target = self.header.spec.budget.target
        if target is None or trial.mlups is None or unreliable_target(self.header):
            return
        whole = predicted_mlups if target.of == "prediction" else None
        share = trial.mlups / whole if whole else self._share_of_ceiling(trial)
        if share >= target.share:
            self.reason = f"{100 * share:.1f} % of the {target.of} reached"

    def _share_of_ceiling(self, trial: Trial) -> float:
        return trial.best_measurement.bandwidth_bytes_per_s / self.header.ceiling.best_bytes_per_s
