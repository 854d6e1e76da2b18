"""Print a finished study: its ranking, costs and files."""

import logging
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from lbmtune.cli.format import output
from lbmtune.records import Trial
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.header import prior_text
from lbmtune.records.remarks import (
    description_disturbance,
    devices_text,
    disturbance,
    doubt,
    faster_first,
    in_cache_of,
    left_alone,
    prediction_doubt,
    predictions_hold,
    race_text,
    too_much_power,
    unsteadiness,
)
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.on_parts import parts_rows, parts_text
from lbmtune.report.study.output import output_row
from lbmtune.report.tables import SHORT, fluid_share, objective_texts
from lbmtune.search.pareto import held_text, members
from lbmtune.units import format_bytes, format_mlups

LOG = logging.getLogger("lbmtune")
SPARE = ("predicted", "footprint", "registers", "sustained")
"""Columns of the ranking that a narrow terminal leaves out, the first ones first."""
_MEMBER = "lbmtune export STUDY --member N writes another one."
_ON_PARTS, _WORDS = 6, ("kernel", "cut", "coupling", "beside one device")
"""Rows on several devices that are printed, and their columns of words."""
_TIED = 5
"""Trials that are named as tied with the winner."""
_UNRELIABLE = " not reliable"
_COLUMNS = (
    "MLUPS>",
    "+->",
    "sustained>",
    "note",
    "stage",
    "proven",
    "predicted>",
    "ceiling>",
    "footprint>",
    "registers>",
    "key",
    "configuration",
)


def print_study(record: StudyRecord, report: Path | None = None, best: Path | None = None) -> None:
    """Print a study that has a winner, its files if they were written, and remarks on how far its figures hold."""
    console = output.stdout()
    if uncertain := doubt(record):
        console.print(uncertain, "", markup=False)
    for part in output.fitted(ranking(record), console.width, SPARE):
        console.print(part, "")
    if found := members(record):
        console.print(pareto_set(record, found), "")
        console.print(f"{held_text(record, found)}; {_MEMBER}", "", markup=False)
    if rows := parts_rows(record)[:_ON_PARTS]:
        columns = [name if name in _WORDS else f"{name}>" for name in rows[0]]
        console.print(output.table("on several devices", columns, [tuple(row.values()) for row in rows]), "")
    output.print_pairs(_cost_rows(record))
    for name, file in (("report", report), ("best.json", best)):
        if file:
            console.print(f"{name:<10} {file}", markup=False)
    described = description_disturbance(*record.header.cpu_shares)
    remarks = (faster_first(record), disturbance(record), described, unsteadiness(record), in_cache_of(record))
    for remark in filter(None, remarks):
        LOG.warning(remark)


def pareto_set(record: StudyRecord, found: Sequence[Trial]) -> Table:
    """Return the members of a Pareto set as a table, the best by the first objective first."""
    titles = [f"{SHORT[name]}>" for name in record.header.spec.objectives]
    rows = (
        (place, *objective_texts(record, trial), trial.key, output.short(trial.config))
        for place, trial in enumerate(found, 1)
    )
    return output.table("Pareto set", ("member>", *titles, "key", "configuration"), rows)


def ranking(record: StudyRecord, length: int = 5) -> Table:
    """Return all finalists, or the best `length` trials, as a table with finalists first."""
    shown = max(length, sum(trial.final is not None for trial in record.ranked))
    return output.table("the best", _COLUMNS, (_row(record, trial) for trial in record.ranked[:shown]))


def _row(record: StudyRecord, trial: Trial) -> tuple[object, ...]:
    measured = trial.best_measurement
    interval = record.interval(trial)
    half = f"{'>= ' * (interval.between is None)}{percent(interval.half_width)}"
    registers = trial.resources.registers if trial.resources else 0
    bandwidths, calibration = record.header.cpu_shares
    doubtful = "" if predictions_hold(bandwidths, calibration) else _UNRELIABLE
    return (
        format_mlups(measured.mlups),
        half,
        format_mlups(trial.sustained.mlups) if trial.sustained else "",
        _note(record, trial),
        "final" if trial.final else "first",
        "yes" if trial.proven else "no",
        f"{format_mlups(trial.prediction.mlups)}{doubtful}" if trial.prediction else "",
        f"{100 * record.share_of_ceiling(trial):.1f} %{'' if left_alone(bandwidths) else _UNRELIABLE}",
        format_bytes(trial.prediction.footprint_bytes) if trial.prediction else "",
        registers or "-",
        trial.key,
        output.short(trial.config),
    )


def _interval(record: StudyRecord) -> str:
    """Return the winner's speed, what its interval says, and the trials that it covers."""
    winner = record.ranked[0]
    tied = [trial.key for trial in record.ranked if trial.number in record.tied]
    others = (
        f"; tied with {', '.join(tied[:_TIED])}{f' and {len(tied) - _TIED} more' * (len(tied) > _TIED)}" if tied else ""
    )
    return f"{format_mlups(winner.best_measurement.mlups)} MLUPS {record.interval(winner)}{others}"


def _how_predicted(record: StudyRecord) -> str:
    """Return by what predictions are calibrated, and why they are not reliable if so."""
    return "; ".join(filter(None, (record.header.calibrated_how, prediction_doubt(*record.header.cpu_shares))))


def _note(record: StudyRecord, trial: Trial) -> str:
    """Return what limits the comparison of a trial with others; empty if nothing does."""
    notes = {
        "disturbed": trial.best_measurement.disturbed,
        "sustained run disturbed": bool(trial.sustained and trial.sustained.disturbed),
        "tied": trial.number in record.tied,
    }
    return ", ".join(note for note, holds in notes.items() if holds)


def _cost_rows(record: StudyRecord) -> list[tuple[str, object]]:
    costs = record.costs
    failed = len(record.trials) - len(record.ranked)
    seconds = (
        f"{costs.compile_s:.1f} s compiling, {costs.verify_s:.1f} s verifying, {costs.measure_s:.1f} s measuring, "
        f"{costs.search_s:.1f} s searching"
    )
    case = record.header.spec.case
    fluid = [("fluid cells", fluid_share(case, record.ranked[0].best_measurement.sites))] if case.geometry else []
    return [
        *fluid,
        ("speed", _interval(record)),
        *([("finals", text)] if (text := race_text(record)) else []),
        *([("over the power", text)] if (text := too_much_power(record)) else []),
        *([("several", text)] if (text := parts_text(record)) else []),
        *([("output costs", text)] if (text := output_row(record.ranked[0])) else []),
        (
            "evaluations",
            f"{len(record.trials)} of {record.header.legal_configurations} legal, {failed} without speed"
            + (f", {record.verified_per_s:.1f} verified kernels per second" if record.verified_per_s else ""),
        ),
        *([("devices", text)] if (text := devices_text(record)) else []),
        ("cost", seconds),
        *([("search", record.header.stopped)] if record.header.stopped else []),
        *([("left out", "; ".join(record.header.left_out))] if record.header.left_out else []),
        *([("predictions", how)] if (how := _how_predicted(record)) else []),
        *([("prior", text)] if (text := prior_text(record.header.earlier)) else []),
    ]
