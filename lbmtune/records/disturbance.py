"""What it means, in words, that a measurement was disturbed."""

from __future__ import annotations

from lbmtune.records import Measurement, Sustained
from lbmtune.records.study import StudyRecord

_ADVICE = "these speeds are too low and the ranking is not reliable; run again when the machine is idle"
_TOO_LOW = "the sustained speed is too low and cannot be compared; run again when the machine is idle"


def disturbance(study: StudyRecord) -> str:
    """One sentence where the best trial of a study was disturbed, its samples or its run of seconds; else empty."""
    if not study.ranked:
        return ""
    best = study.ranked[0]
    if best.best_measurement.disturbed:
        return f"{_cause(best.best_measurement)}: {_ADVICE}."
    if best.sustained and best.sustained.disturbed:
        return f"during the sustained run {_cause(best.sustained)}: {_TOO_LOW}."
    return ""


def _cause(measurement: Measurement | Sustained) -> str:
    found = measurement.conditions
    if found.cpu_share is not None:
        return f"other programs used the processor (CPU share {100 * found.cpu_share:.0f} %)"
    if found.throttle:
        return f"the GPU reduced its clocks ({', '.join(found.throttle)})"
    return "the device was not left alone"
