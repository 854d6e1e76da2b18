"""Why the winner is as fast as it is: the time of an update, split by the terms of the model, as a waterfall."""

from dataclasses import dataclass

from lbmtune.records import Prediction, Trial
from lbmtune.records.profile import Profile
from lbmtune.records.remarks import prediction_doubt
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import MEANINGS, MEMORY
from lbmtune.report.drawing import Figure, plain_figure
from lbmtune.report.html import Panel, panel
from lbmtune.report.limits import alone_s, binding, ceiling_of
from lbmtune.report.profile import profile_panel
from lbmtune.report.profile_tables import conclusion
from lbmtune.report.study.speeds import parity_info
from lbmtune.report.waterfall import Step, add_waterfall
from lbmtune.units import format_mlups, format_ps, format_rate

_MODEL, _REST = "#e69f00", "#0072b2"
UNEXPLAINED = "not explained"
_SAID = 0.01
"""Share of an update from which on a term is told of in words."""
_AGREE = 0.005
"""Relative difference up to which two bandwidths are the same."""
_CAPTION = (
    "Picoseconds of the whole device per update, by the terms of the model, which is not fitted to this study. Terms "
    "are what each adds after overlap; the last step closes the gap to the measurement."
)


@dataclass(frozen=True)
class Part:
    """A part of the time of an update. share: of the predicted time; seconds: negative if it saves time.

    alone_s: what it would take by itself, None if the record does not tell it.
    """

    name: str
    seconds: float
    share: float
    figures: str = ""
    source: str = ""
    alone_s: float | None = None

    @property
    def meaning(self) -> str:
        """Return what the part is the time of; empty if it is no term."""
        return MEANINGS.get(self.name, "")

    @property
    def ps(self) -> str:
        """Return its picoseconds as text."""
        return format_ps(self.seconds)

    @property
    def alone_ps(self) -> str:
        """Return the picoseconds by itself as text; empty if unknown."""
        return "" if self.alone_s is None else format_ps(self.alone_s)


def parts(trial: Trial) -> tuple[Part, ...]:
    """Return the terms of a trial's prediction and what they do not explain; none without terms."""
    predicted = trial.prediction
    if predicted is None or not predicted.terms:
        return ()
    whole = 1e-6 / predicted.mlups
    rest = 1e-6 / trial.best_measurement.mlups - whole
    terms = predicted.significant_terms
    found = [Part(one.name, one.seconds, one.seconds / whole, one.figures, one.source, alone_s(one)) for one in terms]
    return (*found, Part(UNEXPLAINED, rest, rest / whole, "measured minus predicted"))


def levels_said(study: StudyRecord, profile: Profile) -> str:
    """Conclude from the measured levels, and say if their first one is not what limits the winner."""
    limit = binding(study, study.ranked[0])
    if limit is None or limit.name == MEMORY:
        return conclusion(profile)
    return f"{conclusion(profile)} These are shares of what memory alone would allow; the limit is {limit.name}."


def why_panels(study: StudyRecord, profile: Profile | None = None) -> list[Panel]:
    """Return waterfalls of the winner: measured levels if it was profiled, and terms if its prediction has some."""
    measured = [profile_panel(profile)] if profile else []
    found = parts(study.ranked[0]) if study.ranked else ()
    doubtful = prediction_doubt(*study.header.cpu_shares)
    caption = _CAPTION + (f" Predictions are {doubtful}." if doubtful else "")
    return [
        *measured,
        *([panel("why", "Time of an update, by the model", caption, why_figure(found))] if found else []),
    ]


def why_figure(found: tuple[Part, ...]) -> Figure:
    """Draw the parts one after the other, up to the measured time."""
    figure = plain_figure("", "ps per update")
    steps = [Step(one.name, one.seconds, _REST if one.name == UNEXPLAINED else _MODEL) for one in found]
    add_waterfall(figure, "model", steps, total=Step("measured", sum(one.seconds for one in found), _REST))
    figure.update_yaxes(rangemode="tozero")
    return figure


def said(trial: Trial) -> str:
    """Say in a sentence what takes the time of an update; empty if the prediction has no terms."""
    predicted = trial.prediction
    if predicted is None or not predicted.terms:
        return ""
    measured = trial.best_measurement.mlups
    whole = sum(term.seconds for term in predicted.terms)
    largest = [one for one in predicted.significant_terms[:4] if one.seconds >= _SAID * whole]
    shares = ", ".join(f"{one.seconds / whole:.0%} {one.name}" for one in largest)
    return (
        f"By the model the time of an update is {shares}. It predicts {format_mlups(predicted.mlups)} MLUPS; "
        f"measured are {format_mlups(measured)}, {_difference(predicted, measured)}."
    )


def limit_said(study: StudyRecord) -> str:
    """Tell the limit from the ceiling and from the model's memory term, and a small rest from the model's error."""
    winner = study.ranked[0]
    limit, measured = binding(study, winner), winner.best_measurement
    if limit is None or limit.name != MEMORY:
        return ""
    ceiling, moved = ceiling_of(study), measured.bytes_per_update
    rate = format_rate(ceiling.bytes_per_s)
    if not limit.measured:
        allowed = format_mlups(ceiling.bytes_per_s / moved / 1e6)
        counted = limit.source.partition(": ")[2]
        return (
            f"The limit is memory by the model ({counted}); {ceiling.name} at {rate} and {moved:.4g} bytes per update "
            f"would allow {allowed} MLUPS."
        )
    return f"{_slower_than(winner, f'{ceiling.name}, {rate}', limit.mlups)}{_rest(study, measured.mlups / limit.mlups)}"


def _slower_than(winner: Trial, ceiling: str, allowed_mlups: float) -> str:
    """Say that the model's bandwidth is not that of the ceiling; empty if they agree."""
    seconds = winner.prediction.seconds_of(MEMORY) if winner.prediction else 0.0
    if not seconds or abs(1e-6 / seconds / allowed_mlups - 1) < _AGREE:
        return ""
    rate = format_rate(winner.best_measurement.bytes_per_update / seconds)
    return f"The model takes {rate} for accesses like these; the limit is that of the fastest benchmark ({ceiling}). "


def _rest(study: StudyRecord, share: float) -> str:
    error = parity_info(study).median_error
    if error is None or not 0 < 1 - share < error:
        return ""
    return f"The rest to the limit, {1 - share:.1%}, is below the median error of the model, {error:.1%}."


def _difference(predicted: Prediction, measured: float) -> str:
    off = measured / predicted.mlups - 1
    return "as much" if abs(off) < 0.005 else f"{abs(off):.0%} {'more' if off > 0 else 'less'}"
