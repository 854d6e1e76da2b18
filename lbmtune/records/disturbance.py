"""What it means, in words, that a measurement was disturbed."""

from __future__ import annotations

from lbmtune.records import Measurement
from lbmtune.records.study import StudyRecord

_ADVICE = "these speeds are too low and the ranking is not reliable; run again when the machine is idle"


def disturbance(study: StudyRecord) -> str:
    """One sentence where the best measurement of a study was disturbed; empty where it was not."""
    best = study.ranked[0].best_measurement if study.ranked else None
    return f"{_cause(best)}: {_ADVICE}." if best and best.disturbed else ""


def _cause(measurement: Measurement) -> str:
    found = measurement.conditions
    if found.cpu_share is not None:
        return f"other programs used the processor (CPU share {100 * found.cpu_share:.0f} %)"
    if found.throttle:
        return f"the GPU reduced its clocks ({', '.join(found.throttle)})"
    return "the device was not left alone"
