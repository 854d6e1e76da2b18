"""The winner of a study: measurement, verification, accuracy, launches and source."""

from typing import Any

from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.records import Accuracy, Measurement, Prediction, Trial, Verification
from lbmtune.records.best_json.kernel import Kernel
from lbmtune.records.remarks import prediction_doubt, race_text, too_much_power
from lbmtune.records.study import StudyRecord
from lbmtune.report.limits import binding, ceiling_of, roofs_of
from lbmtune.report.study.details import knob_meanings
from lbmtune.report.study.tables import moved
from lbmtune.report.tables import Pairs, conditions_table, fluid_share, plus_minus, product_text, sustained_table
from lbmtune.search.kinds import rounding_of
from lbmtune.units import format_bytes, format_mlups, format_rate

Occupancy = tuple[int, int, int]
"""Blocks on a multiprocessor, their warps, and the most warps."""


def winner_section(study: StudyRecord, kernel: Kernel | None, occupancy: Occupancy | None = None) -> dict[str, Any]:
    """Return the values of the section in the template. kernel: as this version prints it; None: left out."""
    winner = study.ranked[0]
    config = winner.kernel_config
    return {
        "trial": winner,
        "knobs": list(winner.config.items()),
        "meanings": knob_meanings([winner]),
        "measured": winner_table(study, kernel, occupancy),
        "verification": verification_table(winner.verification),
        "sustained": sustained_table(run, study.header.spec.case.speed_unit) if (run := winner.sustained) else [],
        "accuracy": accuracy_table(winner.accuracy),
        "accuracy_cells": product_text(winner.accuracy.domain) if winner.accuracy else "",
        "accuracy_date": winner.accuracy.date if winner.accuracy else "",
        "kinds": rounding_table(study),
        "precision": f"{config.storage} stored, {config.compute} computed",
        "conditions": conditions_table(winner.best_measurement.conditions),
        "kernel": kernel,
        "buffers": _buffers(study, winner, kernel) if kernel else "",
        "stale": stale_warning(winner, kernel) if kernel else "",
    }


def _buffers(study: StudyRecord, winner: Trial, kernel: Kernel) -> str:
    config = winner.kernel_config
    total = format_bytes(footprint_bytes(study.header.spec.case, config))
    state = kernel.buffers[0]
    return f"{config.copies} x {state.elements:,} elements of {state.dtype}, {total} in total"


def stale_warning(winner: Trial, kernel: Kernel) -> str:
    """Warn if the kernel is not the one that was measured; empty if it is, or if that was not recorded."""
    now, then = kernel.source_digest, winner.source_digest
    if then in ("", now):
        return ""
    return (
        "This version of lbmtune prints another kernel than the one that was measured (source digest "
        f"{now[:12]} now, {then[:12]} then)."
    )


def winner_table(study: StudyRecord, kernel: Kernel | None = None, occupancy: Occupancy | None = None) -> Pairs:
    """Return the measurement of the winner, its shares of all bandwidths, prediction and resources."""
    winner, case = study.ranked[0], study.header.spec.case
    m, spread = winner.best_measurement, study.interval(winner)
    rows = [
        ("speed", f"{format_mlups(m.mlups)} {case.speed_unit}"),
        (
            "interval",
            f"{format_mlups(spread.low_mlups)} to {format_mlups(spread.high_mlups)} {case.speed_unit}, "
            f"{plus_minus(spread)}",
        ),
        ("tied with", ", ".join(f"trial {number}" for number in sorted(study.tied)) or "no other trial"),
        *([("finals", text)] if (text := race_text(study, "trial ")) else []),
        *([("over the power", text)] if (text := too_much_power(study)) else []),
        ("samples", f"{len(m.samples_s)}{' in the finals' if winner.final else ''}, {m.steps_per_sample} steps each"),
        ("bandwidth", format_rate(m.bandwidth_bytes_per_s)),
        ("bytes per update", moved(m.bytes_per_update)),
        *_shares(study, m),
        *(_prediction(study, winner.prediction) if winner.prediction else ()),
    ]
    if m.disturbed:
        rows.append(("remark", "the conditions of the protocol were not met, even after repeats"))
    cells = ("fluid cells", fluid_share(case, m.sites)) if case.geometry else ("cells", f"{case.sites:,}")
    return [*rows, *_resources(winner, kernel), *_occupied(occupancy), cells]


def _shares(study: StudyRecord, measurement: Measurement) -> Pairs:
    ceiling, limit = ceiling_of(study), binding(study, study.ranked[0])
    word = f", the {'benchmark' if limit.exceeded else 'limit'}" if limit and limit.measured else ""
    return [
        (
            f"of {roof.name}{word if roof == ceiling else ''}",
            f"{measurement.bandwidth_bytes_per_s / roof.bytes_per_s:.1%} of {format_rate(roof.bytes_per_s)}",
        )
        for roof in roofs_of(study)
        if roof.bytes_per_s and (roof == ceiling or measurement.bandwidth_bytes_per_s <= roof.bytes_per_s)
    ]


def _prediction(study: StudyRecord, prediction: Prediction) -> Pairs:
    unit, doubtful = study.header.spec.case.speed_unit, prediction_doubt(*study.header.cpu_shares)
    made = f", made on {prediction.date} from the record" if prediction.date else ""
    limited = "; its parts stand in Why" if prediction.terms else f", limited by {prediction.limit}"
    return [
        ("prediction", f"{format_mlups(prediction.mlups)} {unit}{made}{limited}"),
        *([("remark on the prediction", doubtful)] if doubtful else []),
        (
            "bandwidth of the prediction",
            f"{format_rate(prediction.bandwidth_bytes_per_s)} ({prediction.ceiling_source})",
        ),
        ("footprint", format_bytes(prediction.footprint_bytes)),
    ]


def _resources(trial: Trial, kernel: Kernel | None) -> Pairs:
    r = trial.resources
    if not r or not r.registers:
        return [("registers", "unknown on this device")]
    launched = [launch.shared_bytes for step in (*kernel.period, *kernel.opening) for launch in step] if kernel else []
    return [
        ("registers per thread", str(r.registers)),
        ("spills", f"{r.spill_bytes} B"),
        ("local memory per thread", f"{r.local_bytes} B"),
        ("shared memory per block", f"{max(r.shared_bytes, *launched, 0):,} B"),
        ("code", format_bytes(r.code_bytes)),
    ]


def _occupied(occupancy: Occupancy | None) -> Pairs:
    if occupancy is None:
        return []
    blocks, warps, most = occupancy
    return [("occupancy", f"{blocks} block{'s' * (blocks != 1)} per multiprocessor, {warps} of {most} warps")]


def verification_table(found: Verification | None) -> Pairs:
    """Return how a kernel was verified."""
    if not found:
        return []
    cell = ", ".join(map(str, found.worst_cell))
    single = [("kernel of one step", _single(found.single))] if found.single else []
    return [
        ("result", "passed" if found.passed else "failed"),
        ("largest error of a population", f"{found.error:.3g}"),
        ("bound", f"{found.bound:.3g}"),
        ("error / bound", f"{found.error / found.bound:.2%}" if found.bound else "-"),
        ("found at", found.where or f"f_{found.worst_direction}, cell ({cell}), after {found.worst_steps} steps"),
        ("domains", "; ".join("x".join(map(str, domain)) for domain in found.domains)),
        ("full size", "verified at full size" if found.full_size else "not verified at full size"),
        *single,
    ]


def _single(found: Verification) -> str:
    """Return the verification of the kernel for left-over steps, run alternately with that of several."""
    result = "passed" if found.passed else "failed"
    return f"{result}, alternating with it, error / bound {found.error / found.bound:.2%}"


def accuracy_table(found: Accuracy | None) -> list[dict[str, str]]:
    """Return L2 errors of the winner's precision, a row per peak velocity of the vortex."""
    return [
        {
            "u0": f"{p.velocity_scale:g}",
            "relaxation rate": f"{p.relaxation_rate:.4g}",
            "time steps": f"{p.steps:,}",
            "velocity against fp64": _error(p.velocity),
            "of it per time step": _error(None if p.velocity is None else p.velocity / p.steps),
            "density against fp64": _error(p.density),
            "velocity against exact": _error(p.velocity_to_exact),
            "velocity of fp64 against exact": _error(p.reference_velocity_to_exact),
            "density against exact": _error(p.density_to_exact),
            "density of fp64 against exact": _error(p.reference_density_to_exact),
        }
        for p in (found.points if found else ())
    ]


def rounding_table(study: StudyRecord) -> list[dict[str, str]]:
    """Return the error after many steps of each rounding among the finalists."""
    errors = {rounding_of(t.kernel_config): t.accuracy for t in study.ranked if t.accuracy}
    return [
        {
            "state": rounding.state,
            "steps per launch": str(rounding.steps),
            "stored": rounding.storage,
            "computed": rounding.compute,
            "time steps": f"{after.steps:,}",
            "cells": product_text(found.domain),
            "u0": f"{after.velocity_scale:g}",
            "relaxation rate": f"{after.relaxation_rate:.4g}",
            "velocity against fp64": _error(after.velocity),
            "density against fp64": _error(after.density),
        }
        for rounding, found in errors.items()
        if (after := found.after)
    ]


def _error(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2e}"
