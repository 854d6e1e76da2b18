"""All trials of a study for other tools: a data frame, CSV, and T4, the open format of autotuning results.

Source of T4: the schema of version 1.0.0 that Kernel Tuner ships (github.com/odgaard/TuningSchema).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune.records import Accuracy, Measurement, Outcome, Trial
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically

if TYPE_CHECKING:
    import pandas

T4_VERSION = "1.0.0"
_INVALIDITY = {
    Outcome.OK: "correct",
    Outcome.ILLEGAL: "constraints",
    Outcome.COMPILE_FAILED: "compile",
    Outcome.TOO_MANY_RESOURCES: "runtime",
    Outcome.OUT_OF_MEMORY: "runtime",
    Outcome.WRONG_RESULT: "correctness",
    Outcome.MISCOMPILED: "correctness",
    Outcome.UNSTABLE_TIMING: "runtime",
    Outcome.CRASHED: "runtime",
    Outcome.TIMED_OUT: "timeout",
}
_MS = 1e3
"""Milliseconds of a second: the unit of T4 as Kernel Tuner writes it."""


def trials_frame(record: StudyRecord) -> pandas.DataFrame:
    """Return all trials as a table: figures of `_figures`, then each knob; a knob that a kernel lacks is empty."""
    import pandas  # loads slowly, and little else needs it

    return pandas.DataFrame([{**_figures(record, trial), **trial.config} for trial in record.trials])


def _figures(record: StudyRecord, trial: Trial) -> dict[str, Any]:
    found = trial.best_measurement if trial.mlups is not None else None
    resources, costs = trial.resources, trial.costs
    return {
        "number": trial.number,
        "key": trial.key,
        "outcome": str(trial.outcome),
        "reason": trial.reason,
        "mlups": trial.mlups,
        "low_mlups": found.ci_low_mlups if found else None,
        "high_mlups": found.ci_high_mlups if found else None,
        "final": trial.final is not None,
        "disturbed": found.disturbed if found else None,
        "share_of_ceiling": record.share_of_ceiling(trial) if found else None,
        "predicted_mlups": trial.prediction.mlups if trial.prediction else None,
        "footprint_bytes": trial.prediction.footprint_bytes if trial.prediction else None,
        "device": trial.device or record.header.environment.device_id,
        "registers": resources.registers if resources else None,
        "spill_bytes": resources.spill_bytes if resources else None,
        "compile_s": costs.compile_s,
        "verify_s": costs.verify_s,
        "measure_s": costs.measure_s,
        "date": trial.date,
    }


def write_csv(record: StudyRecord, path: Path) -> None:
    """Write the table of all trials as CSV. Raises InputError if the path cannot be written."""
    write_atomically(path, trials_frame(record).to_csv(index=False).encode())


def write_t4(record: StudyRecord, path: Path) -> None:
    """Write all trials as T4. Raises InputError if the path cannot be written."""
    header = record.header
    told = {
        "schema_version": T4_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "objective_performance_keys": ["MLUPS"],
            "study": header.spec.name,
            "device": header.environment.device,
            "lbmtune": header.version,
            "legal_configurations": header.legal_configurations,
        },
        "results": [_result(trial, header.spec.objectives) for trial in record.trials],
    }
    write_atomically(path, (json.dumps(told, indent=1) + "\n").encode())


def _result(trial: Trial, objectives: Sequence[str]) -> dict[str, Any]:
    costs, found = trial.costs, trial.best_measurement if trial.mlups is not None else None
    return {
        "timestamp": trial.date,
        "configuration": trial.config,
        "times": {
            "compilation_time": _MS * costs.compile_s,
            "validation": _MS * costs.verify_s,
            "benchmark": _MS * costs.measure_s,
            "search_algorithm": _MS * costs.search_s,
            "framework": 0.0,
            "runtimes": [_MS * seconds for seconds in found.samples_s] if found else [],
        },
        "invalidity": _INVALIDITY[trial.outcome],
        "correctness": float(found is not None),
        "measurements": _measurements(trial, found),
        "objectives": ["MLUPS" if name == "mlups" else name for name in objectives],
    }


def _measurements(trial: Trial, found: Measurement | None) -> list[dict[str, Any]]:
    figures: list[tuple[str, float | None, str]] = [
        ("MLUPS", trial.mlups, "million cell updates per second"),
        ("low_MLUPS", found.ci_low_mlups if found else None, "million cell updates per second"),
        ("high_MLUPS", found.ci_high_mlups if found else None, "million cell updates per second"),
        ("bandwidth", found.bandwidth_bytes_per_s if found else None, "bytes per second"),
        ("energy", trial.sustained.nj_per_update if trial.sustained else None, "nanojoules per cell update"),
        ("accuracy", _finite(trial.accuracy), "relative error of the velocity"),
        ("footprint", trial.prediction.footprint_bytes if trial.prediction else None, "bytes"),
        ("predicted_MLUPS", trial.prediction.mlups if trial.prediction else None, "million cell updates per second"),
        ("registers", trial.resources.registers if trial.resources else None, ""),
    ]
    return [{"name": name, "value": value, "unit": unit} for name, value, unit in figures if value is not None]


def _finite(accuracy: Accuracy | None) -> float | None:
    return accuracy.error if accuracy and isfinite(accuracy.error) else None
