"""Tables of a study: all trials, case and protocol, with units in the column names."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import NamedTuple, TypedDict

from lbmtune.catalogue.own_kernel.definition import OwnKernel
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.records import Trial
from lbmtune.records.header import StudyHeader, prior_text
from lbmtune.records.remarks import devices_text
from lbmtune.records.study import StudyRecord
from lbmtune.records.terms import MEANINGS
from lbmtune.report.study.details import Details, details, meanings
from lbmtune.report.study.trials import flaws, varied_knobs
from lbmtune.report.tables import Pairs, product_text
from lbmtune.search.optuna_view.importance import importance
from lbmtune.units import format_bytes

Cell = str | float | int | None
_DIGITS = {
    "MLUPS": 1,
    "interval, ± %": 2,
    "within the run, ± %": 2,
    "% of ceiling": 1,
    "predicted MLUPS": 1,
    "measured / predicted": 3,
    "sustained MLUPS": 1,
    "nJ / update": 2,
}
"""Decimal places by column."""
_REASON = 600
_TITLES = {
    "confidence": "relative half-width of the 95 % interval aimed at",
    "bail_out": "factor of slowness at which a candidate is dismissed",
    "profiled": "kernels whose losses are measured level by level",
    "final_rounds": "rounds of the finals, at most",
    "finalists": "finalists, beside the best of each kind",
    "min_cpu_share": "CPU share below which a sample is disturbed",
}
"""Titles of fields of the protocol whose names do not explain them."""


class Knob(TypedDict):
    """A knob that varies. told: how much it matters, empty if that is not known."""

    name: str
    told: str


class TrialTable(NamedTuple):
    """Table of all trials. rows: values of each trial; configs: their text forms; numeric: columns that hold numbers.

    digits: decimal places by column; winner: the row of the best trial, -1 if there is none; knobs: those that vary,
    the most important first; meanings: of columns and knobs; terms: the same of terms;
    details: what else is known of each trial.
    """

    columns: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]
    configs: list[str]
    digits: dict[str, int]
    winner: int
    knobs: list[Knob]
    meanings: dict[str, str]
    terms: Mapping[str, str]
    details: list[Details]


def trial_table(study: StudyRecord) -> TrialTable:
    """Return all trials, in order."""
    varied, sustained = varied_knobs(study), any(trial.sustained for trial in study.trials)
    several = len(study.devices) > 1
    rows = [_row(study, trial, varied, sustained=sustained, several=several) for trial in study.trials]
    columns = list(rows[0]) if rows else []
    shares = importance(study.trials)
    order = sorted(varied, key=lambda name: -shares.get(name, 0.0))
    return TrialTable(
        columns=columns,
        numeric=[all(isinstance(row[name], (int, float, NoneType)) for row in rows) for name in columns],
        rows=[list(row.values()) for row in rows],
        configs=[t.kernel_config.said for t in study.trials],
        digits={name: places for name, places in _DIGITS.items() if name in columns},
        winner=study.trials.index(study.ranked[0]) if study.ranked else -1,
        knobs=[Knob(name=name, told=f"{shares[name]:.0%} of what matters" if name in shares else "") for name in order],
        meanings=meanings(study.trials),
        terms=MEANINGS,
        details=[details(trial) for trial in study.trials],
    )


def _row(study: StudyRecord, trial: Trial, varied: Sequence[str], *, sustained: bool, several: bool) -> dict[str, Cell]:
    """Return the values of a trial by column; those of sustained runs if the study has any, the device of several."""
    m = trial.best_measurement if trial.mlups is not None else None
    spread = study.interval(trial) if m else None
    predicted = trial.prediction.mlups if trial.prediction else None
    resources = trial.resources if trial.resources and trial.resources.registers else None
    row: dict[str, Cell] = {
        "trial": trial.number,
        "outcome": trial.outcome.value,
        "MLUPS": m.mlups if m else None,
        "interval, ± %": 100 * spread.half_width if spread and spread.between is not None else None,
        "within the run, ± %": 100 * spread.within if spread else None,
        "% of ceiling": 100 * study.share_of_ceiling(trial) if m else None,
        "predicted MLUPS": predicted or None,
        "measured / predicted": trial.mlups / predicted if trial.mlups and predicted else None,
        "proven": ("at full size" if trial.proven else "not at full size") if m else None,
    }
    if sustained:
        run = trial.sustained
        row |= {
            "sustained MLUPS": run.mlups if run else None,
            "nJ / update": run.nj_per_update if run else None,
        }
    return {
        **{name: round(x, _DIGITS[name]) if isinstance(x, float) else x for name, x in row.items()},
        **({"device": trial.device or study.header.environment.device_id} if several else {}),
        **{name: trial.config.get(name) for name in varied},
        "registers": resources.registers if resources else None,
        "spills (B)": resources.spill_bytes if resources else None,
        "key": trial.key,
        "reason": _remark(trial)[:_REASON],
    }


def _remark(trial: Trial) -> str:
    if trial.mlups is None:
        return trial.reason
    run = ("sustained run disturbed",) if trial.sustained and trial.sustained.disturbed else ()
    return "; ".join(filter(None, (trial.reason, *flaws(trial.best_measurement), *run)))


def protocol_table(header: StudyHeader) -> Pairs:
    """Return how configurations were verified and timed, and by what predictions are calibrated."""
    protocol = header.spec.protocol
    rows = [(_title(f.name), str(getattr(protocol, f.name))) for f in fields(protocol)]
    ranked_by = [("predictions", header.calibrated_how), ("prior", prior_text(header.earlier))]
    return [*rows, *((name, text) for name, text in ranked_by if text)]


def _title(field: str) -> str:
    if field in _TITLES:
        return _TITLES[field]
    words = field.removesuffix("_s").replace("_", " ")
    return f"{words} (s)" if field.endswith("_s") else words


def case_table(study: StudyRecord) -> Pairs:
    """Return what was solved and searched."""
    header, spec, case = study.header, study.header.spec, study.header.spec.case
    budget = spec.budget
    limits = [
        f"{budget.trials} trials" if budget.trials else "",
        f"{budget.seconds:g} s" if budget.seconds else "",
        f"{budget.search_seconds:g} s of trials" if budget.search_seconds else "",
        f"{100 * budget.target.share:g} % of the {budget.target.of}" if budget.target else "",
    ]
    rows = [
        *(_own_rows(spec.kernel) if spec.kernel else _flow_rows(case)),
        ("domain", f"{product_text(case.domain)} cells"),
        ("objective", ", ".join(spec.objectives)),
        ("footprint allowed", format_bytes(spec.max_footprint_bytes) if spec.max_footprint_bytes else ""),
        ("error allowed", "" if spec.max_error is None else f"{spec.max_error:g} after many steps"),
        ("power allowed", "" if spec.max_power_w is None else f"{spec.max_power_w:g} W, mean of a sustained run"),
        ("output", ", ".join(f"{kind} every {n} steps" for kind, n in spec.output.intervals.items())),
        ("budget", ", ".join(filter(None, limits)) or "the whole legal set"),
        ("end of the search", header.stopped),
        ("left out", "; ".join(header.left_out)),
        ("legal configurations", f"{header.legal_configurations:,}"),
        ("devices", devices_text(study)),
        ("seed", str(spec.seed)),
        ("lbmtune", header.version),
        ("begun", header.date),
        ("ceiling measured", header.ceiling.date),
    ]
    return [(name, value) for name, value in rows if value]


def _flow_rows(case: Case) -> Pairs:
    """Return the problem that kernels of the catalogue solve."""
    return [
        ("flow", case.flow),
        ("lattice", case.lattice),
        ("collision", case.collision),
        ("geometry", case.geometry),
        ("walls", case.walls if case.interpolates else ""),
        ("relaxation rate", f"{case.relaxation_rate:g} per time step"),
        ("viscosity", f"{(1 / case.relaxation_rate - 0.5) / 3:.3g} in lattice units"),
        ("magic parameter", f"{case.magic:g}" if case.collision == "trt" else ""),
        ("faces", ", ".join(case.faces) if case.walled else "all periodic"),
        ("wall velocity", str(case.wall_velocity) if "moving" in case.faces else ""),
        ("inlet velocity", str(case.inlet_velocity) if "velocity" in case.faces else ""),
        ("outlet density", str(case.outlet_density) if "pressure" in case.faces else ""),
        *((f"patch {number}", _patch(patch)) for number, patch in enumerate(case.patches, 1)),
        ("force", str(case.force) if case.forced else ""),
    ]


def _own_rows(kernel: OwnKernel) -> Pairs:
    """Return what is described of a user's kernel."""
    reference = kernel.reference
    beside = f"{reference.entry} in {'NumPy' if reference.python else 'the same text'}"
    return [
        ("kernel", f"{kernel.name}, digest {kernel.digest[:12]}"),
        ("entry", kernel.entry),
        ("compared with", beside if reference.entry else "the first values of all knobs"),
        ("compiler options", " ".join(kernel.options)),
        ("constraints", "; ".join(kernel.constraints)),
    ]


def _patch(patch: Patch) -> str:
    value = f" {patch.density:g}" if patch.kind == "pressure" else f" {patch.velocity}" if any(patch.velocity) else ""
    return f"{patch.kind}{value} at {patch.face or 'solid cells'}: {patch.where}"


def moved(bytes_per_update: float) -> str:
    """Return bytes per update as text."""
    return f"{round(bytes_per_update, 1):g} B"
