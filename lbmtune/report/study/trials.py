"""Verified trials as points of figures, with labels and kinds."""

from collections.abc import Sequence
from dataclasses import dataclass

from lbmtune.catalogue.config import Scalar
from lbmtune.records import Measurement, Trial
from lbmtune.records.study import StudyRecord, once
from lbmtune.search.kinds import Kind, kind_of

DISTURBED, DISMISSED = "disturbed", "dismissed after a first look"
_LEADING = ("family", "representation", "steps", "scheme", "layout", "storage")


@dataclass(frozen=True)
class Point:
    """A verified trial. share: of the measured ceiling; intensity: flop per byte moved.

    flaw: why its speed is no measure of the model's error; empty if it is one. dismissed: it was slow at a first look,
    and not measured to the end; its few samples tell the speed all the same.
    """

    number: int
    kind: Kind
    mlups: float
    predicted_mlups: float | None
    share: float
    intensity: float
    flaw: str = ""
    dismissed: bool = False


@once
def points(study: StudyRecord) -> tuple[Point, ...]:
    """Return the verified trials, best first."""
    operations = study.header.spec.flop_per_update
    return tuple(
        Point(
            number=t.number,
            kind=kind_of(t.kernel_config),
            mlups=t.mlups or 0.0,
            predicted_mlups=t.prediction.mlups if t.prediction else None,
            share=study.share_of_ceiling(t),
            intensity=operations / t.best_measurement.bytes_per_update,
            flaw=DISTURBED if t.best_measurement.disturbed else "",
            dismissed=t.best_measurement.dismissed,
        )
        for t in study.ranked
    )


def by_kind(found: Sequence[Point]) -> dict[str, list[Point]]:
    """Return the points of each kind of kernel, by the label of the kind."""
    groups: dict[str, list[Point]] = {}
    for point in sorted(found, key=lambda p: (p.kind.pattern, p.kind.steps, p.kind.on_chip)):
        groups.setdefault(point.kind.label, []).append(point)
    return groups


def label(trial: Trial, varied: Sequence[str]) -> str:
    """Name a configuration by the knobs that vary within the study."""
    return ", ".join(f"{name} {trial.config[name]}" for name in varied if name in trial.config) or str(trial.key)


@once
def varied_knobs(study: StudyRecord) -> tuple[str, ...]:
    """Return the knobs with more than one value among the trials; family, representation, scheme and so on first."""
    seen: dict[str, set[Scalar]] = {}
    for trial in study.trials:
        for name, value in trial.config.items():
            seen.setdefault(name, set()).add(value)
    lead = [name for name in _LEADING if name in seen]
    return tuple(n for n in [*lead, *(n for n in seen if n not in lead)] if len(seen[n]) > 1)


def flaws(measurement: Measurement) -> tuple[str, ...]:
    """Name how a measurement deviates from the protocol."""
    marks = {DISTURBED: measurement.disturbed, DISMISSED: measurement.dismissed}
    return tuple(mark for mark, holds in marks.items() if holds)
