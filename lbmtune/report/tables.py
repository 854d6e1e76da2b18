"""The tables of the report: rows of text and numbers, units in the column names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from lbmtune.catalogue.config import Scalar, from_flat
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.catalogue.problem.faces import Patch
from lbmtune.codegen.program import Program
from lbmtune.records import Accuracy, Conditions, Environment, Sustained, Trial, Verification
from lbmtune.records.study import StudyHeader, StudyRecord
from lbmtune.report.info import FinalInfo, flaws, roofline_info, varied_axes
from lbmtune.search.accuracy import kind_of
from lbmtune.units import format_bytes, format_mlups, format_rate

Pairs = list[tuple[str, str]]
Cell = str | float | int | None


class TrialTable(NamedTuple):
    """columns: names; rows: one list of values per trial; configs: their text forms; numeric: which columns are.

    digits: decimal places by column name; winner: the row of the best trial, -1 where there is none.
    """

    columns: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]
    configs: list[str]
    digits: dict[str, int]
    winner: int


def trial_table(study: StudyRecord) -> TrialTable:
    """All trials, in order."""
    varied = varied_axes(study)
    lead = [
        "trial",
        "outcome",
        "MLUPS",
        "95 % interval, +- %",
        "% of ceiling",
        "predicted MLUPS",
        "measured / predicted",
    ]
    run = any(trial.sustained for trial in study.trials)
    lead += list(_SUSTAINED) if run else []
    end = ["registers", "spills (B)", "key", "reason"]
    rows = [_row(study, trial, varied, run=run) for trial in study.trials]
    numeric = [all(isinstance(row[i], (int, float)) or row[i] is None for row in rows) for i in range(len(lead))]
    numeric += [all(isinstance(t.config.get(name), int) for t in study.trials) for name in varied]
    numeric += [True, True, False, False]
    digits = {"MLUPS": 1, "95 % interval, +- %": 2, "% of ceiling": 1, "predicted MLUPS": 1, "measured / predicted": 3}
    digits |= _SUSTAINED if run else {}
    configs = [config_text(t.config) for t in study.trials]
    winner = study.trials.index(study.ranked[0]) if study.ranked else -1
    return TrialTable([*lead, *varied, *end], numeric, rows, configs, digits, winner)


_SUSTAINED = {"sustained MLUPS": 1, "nJ / update": 2}
"""Columns of a study with runs of seconds, with their decimal places."""


def _row(study: StudyRecord, trial: Trial, varied: Sequence[str], *, run: bool) -> list[Cell]:
    speed: list[Cell] = [None, None, None]
    if trial.mlups is not None:
        m = trial.best_measurement
        width = 50 * (m.ci_high_mlups - m.ci_low_mlups) / m.mlups
        speed = [round(m.mlups, 1), round(width, 2), round(100 * study.share_of_ceiling(trial), 1)]
    predicted = trial.prediction.mlups if trial.prediction else None
    ratio = round(trial.mlups / predicted, 3) if trial.mlups and predicted else None
    r = trial.resources
    known = r if r and r.registers else None
    return [
        trial.number,
        trial.outcome.value,
        *speed,
        round(predicted, 1) if predicted else None,
        ratio,
        *(_kept_up(trial.sustained) if run else ()),
        *(trial.config.get(name) for name in varied),
        known.registers if known else None,
        known.spill_bytes if known else None,
        trial.key,
        _remark(trial)[:600],
    ]


def _kept_up(found: Sustained | None) -> tuple[Cell, Cell]:
    if found is None:
        return None, None
    return round(found.mlups, 1), None if found.nj_per_update is None else round(found.nj_per_update, 2)


def _remark(trial: Trial) -> str:
    if trial.mlups is None:
        return trial.reason
    run = ("sustained run disturbed",) if trial.sustained and trial.sustained.disturbed else ()
    return "; ".join(filter(None, (trial.reason, *flaws(trial.best_measurement), *run)))


def config_text(config: dict[str, Scalar]) -> str:
    """The form that the command line reads back."""
    return from_flat(config).said


def winner_table(study: StudyRecord, program: Program) -> Pairs:
    """The measurement of the winner and what it is held against; program: the winner's."""
    winner = study.ranked[0]
    m, case = winner.best_measurement, study.header.spec.case
    rows = [
        ("speed", f"{format_mlups(m.mlups)} {case.speed_unit}"),
        (
            "95 % interval of the median",
            f"{format_mlups(m.ci_low_mlups)} to {format_mlups(m.ci_high_mlups)} {case.speed_unit}",
        ),
        ("samples", f"{len(m.samples_s)}{' in the finals' if winner.final else ''}, {m.steps_per_sample} steps each"),
        ("bandwidth", format_rate(m.bandwidth_bytes_per_s)),
        ("bytes per update", moved(m.bytes_per_update)),
    ]
    roofline = roofline_info(study)
    rows += [
        (
            f"of {roof.name}{', the ceiling' if roof is roofline.ceiling else ''}",
            f"{m.bandwidth_bytes_per_s / roof.bytes_per_s:.1%} of {format_rate(roof.bytes_per_s)}",
        )
        for roof in roofline.roofs
        if roof.bytes_per_s
    ]
    if winner.prediction:
        p = winner.prediction
        rows.append(("prediction", f"{format_mlups(p.mlups)} {case.speed_unit}, limited by {p.limit}"))
        rows.append(("bandwidth of the prediction", f"{format_rate(p.bandwidth_bytes_per_s)} ({p.ceiling_source})"))
        rows.append(("footprint", format_bytes(p.footprint_bytes)))
    if m.disturbed:
        rows.append(("remark", "the conditions of the protocol were not met, even after repeats"))
    fluid = [("fluid cells", f"{m.sites:,}")] if case.geometry else []
    return [*rows, *_resources(winner, program), ("cells", f"{case.sites:,}"), *fluid]


def _resources(trial: Trial, program: Program) -> Pairs:
    r = trial.resources
    if not r or not r.registers:
        return [("registers", "not known for this device")]
    return [
        ("registers per thread", str(r.registers)),
        ("spills", f"{r.spill_bytes} B"),
        ("local memory per thread", f"{r.local_bytes} B"),
        ("shared memory per block", f"{max(r.shared_bytes, *program.dynamic_shared_bytes.values()):,} B"),
        ("code", format_bytes(r.code_bytes)),
    ]


def verification_table(found: Verification | None) -> Pairs:
    """How the winner was proved."""
    if not found:
        return []
    cell = ", ".join(map(str, found.worst_cell))
    single = [("kernel of one step", _in_turn(found.single))] if found.single else []
    return [
        ("result", "passed" if found.passed else "failed"),
        ("largest error of a population", f"{found.error:.3g}"),
        ("bound", f"{found.bound:.3g}"),
        ("error / bound", f"{found.error / found.bound:.2%}" if found.bound else "-"),
        ("found at", f"f_{found.worst_direction}, cell ({cell}), after {found.worst_steps} steps"),
        ("domains", "; ".join("x".join(map(str, domain)) for domain in found.domains)),
        ("full size", "verified at full size" if found.full_size else "not verified at full size"),
        *single,
    ]


def _in_turn(found: Verification) -> str:
    """How the kernel for steps that are no whole launch was proved."""
    return f"{'passed' if found.passed else 'failed'} in turn with it, error / bound {found.error / found.bound:.2%}"


def accuracy_table(found: Accuracy | None) -> list[dict[str, str]]:
    """L2 errors of the winner's precision, a row per peak velocity of the vortex; none where they are not known."""
    return [
        {
            "u0": f"{p.velocity_scale:g}",
            "velocity against fp64": _error(p.velocity),
            "density against fp64": _error(p.density),
            "velocity against exact": _error(p.velocity_to_exact),
            "velocity of fp64 against exact": _error(p.reference_velocity_to_exact),
            "density against exact": _error(p.density_to_exact),
            "density of fp64 against exact": _error(p.reference_density_to_exact),
        }
        for p in (found.points if found else ())
    ]


def kinds_table(study: StudyRecord) -> list[dict[str, str]]:
    """The error after many steps of each kind of kernel among the finalists; none where it is not known."""
    known = {kind_of(from_flat(t.config)): t.accuracy.after for t in study.ranked if t.accuracy}
    return [
        {
            "kept": kept,
            "steps per launch": str(steps),
            "stored": storage,
            "computed": compute,
            "time steps": f"{after.steps:,}",
            "u0": f"{after.velocity_scale:g}",
            "velocity against fp64": _error(after.velocity),
            "density against fp64": _error(after.density),
        }
        for (kept, storage, compute, steps), after in known.items()
        if after
    ]


def _error(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.2e}"


def sustained_table(found: Sustained | None, unit: str) -> Pairs:
    """The run of seconds; unit: of speeds of the case."""
    if found is None:
        return []
    reasons = ", ".join(f"{reason} at {share:.0%} of the looks" for reason, share in found.throttled.items())
    clock = found.conditions.sm_clock_hz
    rows = [
        ("speed", f"{format_mlups(found.mlups)} {unit} over {found.seconds:.1f} s, {found.steps:,} time steps"),
        ("energy", f"{found.nj_per_update:.3g} nJ per update, by {found.energy_source}" if found.nj_per_update else ""),
        ("mean power", f"{found.power_w:.0f} W" if found.power_w else ""),
        ("power limit", f"{found.power_limit_w:.0f} W" if found.power_limit_w else ""),
        ("SM clock", f"{clock / 1e6:,.0f} MHz, median" if clock else ""),
        ("reasons for lower clocks", (reasons or "none") if clock or reasons else ""),
        ("temperature", f"{found.conditions.temperature_c:.0f} degrees C" if found.conditions.temperature_c else ""),
        ("CPU share", f"{found.conditions.cpu_share:.1%}" if found.conditions.cpu_share else ""),
        ("remark", "the conditions of the protocol were not met" if found.disturbed else ""),
    ]
    return [(name, value) for name, value in rows if value]


def launch_table(program: Program) -> list[dict[str, Any]]:
    """The launches of one period."""
    return [
        {
            "parity": parity,
            "entry": launch.entry,
            "block": _times(launch.block),
            "grid": _times(program.grid(launch, program.case.domain)),
            "covers": _times(launch.covers),
            "arguments": ", ".join(launch.arguments),
        }
        for parity, step in enumerate(program.period)
        for launch in step
    ]


def finals_table(finals: Sequence[FinalInfo]) -> list[dict[str, str]]:
    """The finalists, with paired ratios to the winner."""
    return [
        {
            "trial": str(f.number),
            "configuration": f.label,
            "best_of": f.best_of,
            "mlups": format_mlups(f.measurement.mlups),
            "interval": f"{format_mlups(f.measurement.ci_low_mlups)} to {format_mlups(f.measurement.ci_high_mlups)}",
            "ratio": f"{f.ratio:.4f}" if f.ratio else "winner" if f is finals[0] else "-",
            "ratio_interval": f"{f.ratio_low:.4f} to {f.ratio_high:.4f}" if f.ratio_low else "",
            "samples": str(len(f.measurement.samples_s)),
        }
        for f in finals
    ]


def conditions_table(conditions: Conditions) -> Pairs:
    """The state of the device during the winner's samples."""
    c = conditions
    rows = [
        ("SM clock", c.sm_clock_hz and f"{c.sm_clock_hz / 1e6:,.0f} MHz"),
        ("memory clock", c.memory_clock_hz and f"{c.memory_clock_hz / 1e6:,.0f} MHz"),
        ("power", c.power_w and f"{c.power_w:.0f} W"),
        ("temperature", c.temperature_c and f"{c.temperature_c:.0f} degrees C"),
        ("CPU share", c.cpu_share is not None and f"{c.cpu_share:.1%}"),
        ("walks through memory", c.memory_bytes_per_s and format_rate(c.memory_bytes_per_s)),
        ("through the last cache", c.last_cache_bytes_per_s and format_rate(c.last_cache_bytes_per_s)),
        (
            "work in registers",
            c.work_per_s and f"{c.work_per_s / 1e9:.3g} billion vector operations per second and core",
        ),
    ]
    known = [(name, value) for name, value in rows if value]
    if c.sm_clock_hz or c.throttle:
        known.append(("throttle reasons", ", ".join(c.throttle) or "none"))
    return known


def environment_table(e: Environment) -> Pairs:
    """Where the study ran."""
    rows = [
        ("device", e.device),
        ("identity", e.device_id),
        ("architecture", e.architecture),
        ("memory", format_bytes(e.memory_bytes) if e.memory_bytes else ""),
        ("CPU cores", str(e.cores or "")),
        ("vector width", f"{e.vector_bits} bit" if e.vector_bits else ""),
        ("driver", e.driver),
        ("runtime", e.runtime),
        ("compiler", e.compiler),
        ("power limit", f"{e.power_limit_w:.0f} W" if e.power_limit_w else ""),
        ("highest SM clock", f"{e.max_sm_clock_hz / 1e6:,.0f} MHz" if e.max_sm_clock_hz else ""),
        ("ECC", "" if e.ecc is None else "on" if e.ecc else "off"),
        ("host", e.host),
        ("Python", e.python),
        ("packages", ", ".join(f"{name} {version}" for name, version in e.packages.items())),
        ("date", e.date),
    ]
    return [(name, value) for name, value in rows if value]


def protocol_table(header: StudyHeader) -> Pairs:
    """How it was verified and timed."""
    protocol = header.spec.protocol
    return [(_named(f.name), str(getattr(protocol, f.name))) for f in fields(protocol)]


def case_table(study: StudyRecord) -> Pairs:
    """What was solved and searched."""
    header, case = study.header, study.header.spec.case
    budget = header.spec.budget
    limits = [f"{budget.trials} trials" if budget.trials else "", f"{budget.seconds:g} s" if budget.seconds else ""]
    rows = [
        ("flow", case.flow),
        ("lattice", case.lattice),
        ("collision", case.collision),
        ("domain", f"{_times(case.domain)} cells"),
        ("geometry", case.geometry),
        ("relaxation rate", f"{case.relaxation_rate:g} per time step"),
        ("viscosity", f"{(1 / case.relaxation_rate - 0.5) / 3:.3g} in lattice units"),
        ("magic parameter", f"{case.magic:g}" if case.collision == "trt" else ""),
        ("faces", ", ".join(case.faces) if case.walled else "all periodic"),
        ("wall velocity", str(case.wall_velocity) if "moving" in case.faces else ""),
        ("inlet velocity", str(case.inlet_velocity) if "velocity" in case.faces else ""),
        ("outlet density", str(case.outlet_density) if "pressure" in case.faces else ""),
        *((f"patch {number}", _patch(patch)) for number, patch in enumerate(case.patches, 1)),
        ("force", str(case.force) if case.forced else ""),
        ("objective", header.spec.objective),
        ("error allowed", "" if header.spec.max_error is None else f"{header.spec.max_error:g} after many steps"),
        ("budget", ", ".join(filter(None, limits)) or "the whole legal set"),
        ("legal configurations", f"{header.legal_configurations:,}"),
        ("seed", str(header.spec.seed)),
        ("lbmtune", header.version),
        ("begun", header.date),
        ("ceiling measured", header.ceiling.date),
    ]
    return [(name, value) for name, value in rows if value]


def _patch(patch: Patch) -> str:
    """Kind, value and place of a patch in words."""
    value = f" {patch.density:g}" if patch.kind == "pressure" else f" {patch.velocity}" if any(patch.velocity) else ""
    return f"{patch.kind}{value} at {patch.face or 'solid cells'}: {patch.where}"


def moved(bytes_per_update: float) -> str:
    """Bytes of an update, for people."""
    return f"{round(bytes_per_update, 1):g} B"


def footprint_text(program: Program) -> str:
    """Bytes of all buffers, for people."""
    return format_bytes(footprint_bytes(program.case, program.config))


def _times(values: Sequence[int]) -> str:
    return " x ".join(map(str, values))


_SAID = {
    "confidence": "95 % interval aimed at, relative half-width",
    "bail_out": "dismissed where slower by this factor",
    "min_cpu_share": "CPU share below which a sample is disturbed",
}
"""Fields of a protocol whose names do not say what they are."""


def _named(field: str) -> str:
    """A field's name as words with its unit."""
    if field in _SAID:
        return _SAID[field]
    words = field.removesuffix("_s").replace("_", " ")
    return f"{words} (s)" if field.endswith("_s") else words
