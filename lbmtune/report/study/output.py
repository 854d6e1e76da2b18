"""The cost of output every n steps: of each finalist, measured and predicted."""

from collections.abc import Sequence

from lbmtune.records import Trial
from lbmtune.records.output import OutputCost
from lbmtune.records.study import StudyRecord
from lbmtune.units import format_mlups


def output_table(study: StudyRecord) -> list[dict[str, str]]:
    """Return a row of text for each kind of output of each finalist, winner first."""
    return [
        {
            "trial": str(trial.number),
            "output": f"{one.kind} every {one.every:,} steps",
            "share": _percent(one.share),
            "range": _range(one),
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
    return _interrupted(trial, [one.share for one in trial.output])


def _interrupted(trial: Trial, shares: Sequence[float]) -> float:
    return (trial.mlups or 0.0) / (1.0 + sum(share / (1 - share) for share in shares))


def output_text(trial: Trial) -> str:
    """Return what the output of a trial costs: 'save every 500 steps 3.1 % (2.8 % to 3.3 %, predicted 2.9 %)'."""
    return ", ".join(
        f"{one.kind} every {one.every:,} steps {_percent(one.share)} ({_range(one)}"
        + (")" if one.predicted_share is None else f", predicted {_percent(one.predicted_share)})")
        for one in trial.output
    )


def output_row(trial: Trial) -> str:
    """Return the cost of a trial's output and the speed that remains, by all rounds; empty without output."""
    if not trial.output:
        return ""
    fast, slow = (_interrupted(trial, shares) for shares in zip(*(one.range for one in trial.output), strict=True))
    speeds = f"{format_mlups(with_output_mlups(trial))} MLUPS ({format_mlups(slow)} to {format_mlups(fast)})"
    return f"{output_text(trial)}; with it {speeds}"


def _range(cost: OutputCost) -> str:
    return " to ".join(map(_percent, cost.range))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
