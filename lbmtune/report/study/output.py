"""The cost of output every n steps: of each finalist, measured and predicted."""

from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.units import format_mlups


def output_table(study: StudyRecord) -> list[dict[str, str]]:
    """Return a row of text for each kind of output of each finalist, winner first."""
    return [
        {
            "trial": str(trial.number),
            "output": f"{one.kind} every {one.every:,} steps",
            "share": _percent(one.share),
            "range": " to ".join(map(_percent, one.range)),
            "predicted": "-" if one.predicted_share is None else _percent(one.predicted_share),
            "each": f"{1e3 * one.event_s:.3g} ms",
            "parts": ", ".join(f"{name} {1e3 * s:.3g} ms" for name, s in (one.predicted_s or {}).items()),
            "apart": "" if one.apart == one.every else f"measured after {one.apart:,} steps",
        }
        for trial in study.ranked
        for one in trial.output
    ]


def output_note(study: StudyRecord) -> str:
    """Return what the figures rest on: the folder of the file and the measured rates; empty without output."""
    rates = study.header.output_rates
    if rates is None:
        return ""
    return f"Predicted by measured rates: {', '.join(rates.told())}."


def with_output_mlups(trial: Trial) -> float:
    """Return the speed of a trial whose steps are interrupted by its output; each kind is due at its own times."""
    step_s = 1.0 + sum(one.share / (1 - one.share) for one in trial.output)
    return (trial.mlups or 0.0) / step_s


def output_text(trial: Trial) -> str:
    """Return what the output of a trial costs, in a phrase: 'save every 500 steps 3.1 % (predicted 2.9 %)'."""
    return ", ".join(
        f"{one.kind} every {one.every:,} steps {_percent(one.share)}"
        + ("" if one.predicted_share is None else f" (predicted {_percent(one.predicted_share)})")
        for one in trial.output
    )


def output_row(trial: Trial) -> str:
    """Return the cost of a trial's output and the speed that remains; empty without output."""
    return f"{output_text(trial)}; with it {format_mlups(with_output_mlups(trial))} MLUPS" if trial.output else ""


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
