"""The main job: study."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbmtune import __version__
from lbmtune.backend.registry import backend_of
from lbmtune.cli.arguments.numbers import time_s, whole
from lbmtune.cli.arguments.options import RESULTS, Device, Json, Sets
from lbmtune.cli.files.ranges import SEED, TRIALS
from lbmtune.cli.files.studyfile import check_acts, load_study, overridden
from lbmtune.cores import usable_cores
from lbmtune.errors import DeviceUnavailableError, InputError, NothingValidError
from lbmtune.records.disturbance import disturbance, doubt, unsteadiness
from lbmtune.records.in_cache import in_cache_of, last_cache
from lbmtune.records.store import HEADER, check_writable, read_study
from lbmtune.records.study import Ceiling, StudyHeader
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.cli.verbs.results import Written
    from lbmtune.measure.workers.evaluate import Evaluator as Proving
    from lbmtune.model.machine.description import Machine
    from lbmtune.records import Accuracy, Prediction, Sustained, Trial
    from lbmtune.records.study import StudyRecord, StudySpec
    from lbmtune.search.accuracy import Accurate
    from lbmtune.search.estimates import Repredict
    from lbmtune.search.interfaces import Evaluator, Observer, Predict, Sustain

CEILING_AGE_S = {"cuda": 0.0, "cpu": 86400.0}
"""How old the measured ceiling may be when a study begins: a GPU takes seconds to measure, a CPU half a minute."""

_COMPILED_BY_A_CORE, _MOST_COMPILED = 8, 200
"""Kernels that a core compiles before the first trial, in some seconds, and how many they may be together."""
SPARE = ("predicted", "footprint", "registers", "sustained")
"""Columns of the best that a narrow terminal does without."""


def study(
    study_file: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="study file, or a shipped study (default: quick)")
    ] = None,
    device: Device = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", help="end after so many trials", parser=whole("--trials", TRIALS, 100)),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="limit of the trials alone: 90s, 5m, 1h; the device is measured and kernels are compiled before, and "
            "finals follow",
            parser=time_s("--time"),
        ),
    ] = None,
    objective: Annotated[str | None, typer.Option("--objective", metavar="NAME", help="mlups or footprint")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the study in the output folder")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="default: one under lbmtune-studies")
    ] = None,
    sets: Sets = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="of the search", parser=whole("--seed", SEED, 2))
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", metavar="URL", help="of Optuna (default: a journal in the study folder)")
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="measure the device's bandwidths again first")] = False,
    as_json: Json = False,
) -> None:
    """Searches the fastest kernel; writes report.html and best.json."""
    from lbmtune.cli.arguments import devices as here
    from lbmtune.search.resume_check import check_same_spec
    from lbmtune.search.space import check_any_is_legal

    given = {"objective": objective, "seed": seed, "budget.trials": trials, "budget.time": time}
    overrides = [*(sets or ()), *(f"{key}={value}" for key, value in given.items() if value is not None)]
    where = here.chosen(device)
    if resume and out and study_file is None:
        spec = overridden(read_study(out).header.spec, overrides)
    else:
        spec = load_study("quick" if study_file is None else study_file, overrides)
    check_acts(sets or (), backend_of(where), here.place(where))
    folder = out or _folder(spec.name, where, resume=resume)
    check_folder(folder, backend_of(where), resume=resume)
    if resume:
        check_same_spec(read_study(folder).header.spec, spec, folder)
    else:  # what is legal nowhere is told before the device is measured
        backend = backend_of(where)
        check_any_is_legal(spec.case, backend, spec.axes[backend], here.widest(where))
    # all speeds of a study are held against its ceiling; one that resumes keeps the ceiling that it began with
    max_age_s = None if resume else CEILING_AGE_S[backend_of(where)]
    try:
        described = here.machine(where, refresh=refresh, max_age_s=max_age_s)
        record = _searched(spec, where, described, folder, storage, resume=resume)
    except KeyboardInterrupt:
        _stopped(where, folder, storage)
        raise typer.Exit(130) from None
    except DeviceUnavailableError:
        if (folder / HEADER).exists():
            _stopped(where, folder, storage)
        raise
    _show(record, _written(record, folder), folder, as_json=as_json)


def _folder(name: str, device: str, *, resume: bool) -> Path:
    """The first folder for this study and device that is free; to resume, the last one that is not."""
    base = RESULTS / f"{name}-{device if device == 'cpu' else f'gpu{device}'}"
    last, number = base, 1
    while True:
        candidate = base if number == 1 else base.with_name(f"{base.name}-{number}")
        if not (candidate / HEADER).exists():
            return last if resume else candidate
        last, number = candidate, number + 1


def check_folder(folder: Path, backend: str, *, resume: bool) -> None:
    """Refuses early what would fail late. Raises InputError."""
    exists = (folder / HEADER).exists()
    if exists and not resume:
        raise InputError(f"{folder} already holds a study; add --resume to go on with it, or choose another --out.")
    if resume and not exists:
        raise InputError(f"{folder} holds no study to resume; give its folder with --out, or leave --resume out.")
    if exists and (kept := read_study(folder).header.backend) != backend:
        raise InputError(f"{folder} was begun on {kept} and this is {backend}; resume it there or start a new study.")
    check_writable(folder)


def _searched(
    spec: StudySpec, device: str, described: Machine, folder: Path, storage: str | None, *, resume: bool
) -> StudyRecord:
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.format.output import stderr
    from lbmtune.cli.format.progress import Progress
    from lbmtune.measure.workers.evaluate import Evaluator
    from lbmtune.search.lock import device_lock

    expected = here.predictor(spec.case, described)
    with (
        Evaluator(spec.case, device, spec.protocol, expected) as evaluator,
        device_lock(evaluator.environment),
        Progress(stderr()) as progress,
    ):
        accuracy = partial(_accuracy, evaluator)
        asked = (accuracy, evaluator.sustained, partial(_accuracy, evaluator, brief=True), _anew(spec, described))
        return search(spec, evaluator, expected, described, folder, progress, storage, *asked, resume=resume)


def _anew(spec: StudySpec, described: Machine) -> Repredict | None:
    """Predictions by what NVRTC says; None where it does not compile for the device, or nobody has calibrated it.

    Then the model says nothing of registers.
    """
    from lbmtune.cli.ranking import compiled_first, compiler_of

    if described.calibration is None or not compiler_of(described, lambda _: None):
        return None

    def predicted(configs: Sequence[KernelConfig]) -> list[Prediction | None]:
        from lbmtune.cli.format import output
        from lbmtune.model.predict import predict

        output.note(f"compiling the {len(configs)} kernels that the model puts first")
        answers = compiled_first(spec.case, configs, described.environment.architecture, output.note)
        return [
            predict(spec.case, config, described, one.resources) if one.resources else None
            for config, one in zip(configs, answers, strict=True)
        ]

    return predicted


def search(
    spec: StudySpec,
    evaluator: Evaluator,
    expected: Predict,
    described: Machine,
    folder: Path,
    observer: Observer,
    storage: str | None = None,
    accuracy: Accurate | None = None,
    sustain: Sustain | None = None,
    briefly: Accurate | None = None,
    predict_anew: Repredict | None = None,
    *,
    resume: bool = False,
) -> StudyRecord:
    """Runs a study on an evaluator. Where nothing valid was found, the record has no winner.

    briefly: the accuracy after many steps alone, which a study with a bound asks of each kind of kernel first;
    predict_anew: of the kernels that the model puts first, by what a compiler says of them.
    """
    from lbmtune.search.accuracy import within
    from lbmtune.search.interfaces import Search
    from lbmtune.search.space import legal_set
    from lbmtune.search.study import run_study

    backend = described.environment.backend
    space = legal_set(spec.case, backend, spec.axes[backend], evaluator.limits)
    if spec.max_error is not None:
        space = within(space, spec.max_error, briefly or (lambda _: None))
    header = _header(spec, described, evaluator)
    header = replace(header, legal_configurations=len(space.configs), illegal_configurations=space.illegal)
    needs = Search(
        evaluator=evaluator,
        predict=expected,
        folder=folder,
        observer=observer,
        storage_url=storage,
        predict_anew=predict_anew,
        compiled=min(_MOST_COMPILED, _COMPILED_BY_A_CORE * usable_cores()),
        accuracy=accuracy,
        sustain=sustain,
    )
    try:
        return run_study(needs, header, space, resume=resume)
    except NothingValidError:
        return read_study(folder)


def _accuracy(evaluator: Proving, config: KernelConfig, *, brief: bool = False) -> Accuracy | None:
    """What the precision of the winner costs; a study is none the worse where that cannot be measured."""
    from lbmtune.cli.format import output

    try:
        return evaluator.accuracy(config, brief=brief)
    except NothingValidError as error:
        output.note(str(error))
        return None


def _header(spec: StudySpec, described: Machine, evaluator: Evaluator) -> StudyHeader:
    ceiling = Ceiling(
        copy_bytes_per_s=described.copy_bytes_per_s,
        in_place_bytes_per_s=described.in_place_bytes_per_s,
        stream_bytes_per_s=described.stream_bytes_per_s,
        date=described.date,
        cpu_share=described.conditions.cpu_share,
    )
    return StudyHeader(
        spec=spec,
        backend=described.environment.backend,
        environment=evaluator.environment,
        ceiling=ceiling,
        calibration_cpu_share=described.calibration_cpu_share,
        last_cache_bytes=last_cache(described.environment.backend, described.caches_bytes),
        legal_configurations=0,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )


def _stopped(device: str, folder: Path, storage: str | None) -> None:
    from lbmtune.cli.format.output import note

    if not (folder / HEADER).exists():
        note("stopped before the first trial; nothing was kept. Begin again with the same command.")
        return
    again = ["lbmtune", "study", "--device", device, "--out", str(folder), "--resume"]
    if storage:
        from lbmtune.search.optuna_storage import without_password

        again += ["--storage", without_password(storage)]
    note(f"stopped; every finished trial is in {folder}. Go on with: {shlex.join(again)}")


def _written(record: StudyRecord, folder: Path) -> Written:
    from lbmtune.cli.verbs.results import write_results

    return write_results(record, folder)


def _show(record: StudyRecord, written: Written, folder: Path, *, as_json: bool) -> None:
    from lbmtune.cli.format import output
    from lbmtune.search.study import nothing_valid

    if as_json:
        output.emit_json(_facts(record, written, folder))
    elif record.winner:
        console = output.stdout()
        if uncertain := doubt(record):
            console.print(uncertain, "", markup=False)
        for part in output.fitted(ranking(record), console.width, SPARE):
            console.print(part, "")
        output.print_pairs(_cost_rows(record))
        console.print(f"report     {written.report}", markup=False)
        console.print(f"best.json  {written.best}", markup=False)
        for remark in filter(None, (overtaken(record), disturbance(record), unsteadiness(record), in_cache_of(record))):
            output.note(remark)
    if record.winner is None:
        raise NothingValidError(f"{nothing_valid(record)} The report is {written.report}.")


def _facts(record: StudyRecord, written: Written, folder: Path) -> dict[str, Any]:
    return {
        "study": str(folder),
        "report": str(written.report),
        "best": str(written.best) if written.best else None,
        "trials": len(record.trials),
        "legal_configurations": record.header.legal_configurations,
        "illegal_configurations": record.header.illegal_configurations,
        "costs": record.costs,
        "winner": record.winner,
        "share_of_ceiling": record.share_of_ceiling(record.winner) if record.winner else None,
    }


def overtaken(record: StudyRecord) -> str:
    """One sentence where a first measurement lies above the interval of the winner's final; else empty."""
    winner = record.winner
    if winner is None or winner.final is None or record.header.spec.objective != "mlups":
        return ""
    first = [t for t in record.ranked if t.final is None]
    best = max(first, key=lambda t: t.best_measurement.mlups, default=None)
    if best is None or best.best_measurement.mlups <= winner.final.ci_high_mlups:
        return ""
    return (
        f"the first measurement of {best.key}, {format_mlups(best.best_measurement.mlups)} MLUPS, lies above the "
        "winner's final; it was not measured again beside the finalists, so the two speeds cannot be compared."
    )


def _kept_up(run: Sustained) -> str:
    return f"{format_mlups(run.mlups)}{' disturbed' if run.disturbed else ''}"


def ranking(record: StudyRecord, length: int = 5) -> Table:
    """All finalists, or so many of the best, with interval, share of the ceiling and resources; finalists first."""
    from lbmtune.cli.format.output import short, table

    def row(trial: Trial) -> tuple[object, ...]:
        measured = trial.best_measurement
        half = 50 * (measured.ci_high_mlups - measured.ci_low_mlups) / measured.mlups
        registers = trial.resources.registers if trial.resources else 0
        return (
            format_mlups(measured.mlups),
            f"{half:.1f} %{' disturbed' if measured.disturbed else ''}",
            _kept_up(trial.sustained) if trial.sustained else "",
            "final" if trial.final else "first",
            format_mlups(trial.prediction.mlups) if trial.prediction else "",
            f"{100 * record.share_of_ceiling(trial):.1f} %",
            format_bytes(trial.prediction.footprint_bytes) if trial.prediction else "",
            registers or "-",
            trial.key,
            short(trial.config),
        )

    columns = (
        "MLUPS>",
        "+->",
        "sustained>",
        "measured",
        "predicted>",
        "ceiling>",
        "footprint>",
        "registers>",
        "key",
        "configuration",
    )
    shown = max(length, sum(trial.final is not None for trial in record.ranked))
    return table("the best", columns, (row(trial) for trial in record.ranked[:shown]))


def _cost_rows(record: StudyRecord) -> list[tuple[str, object]]:
    costs = record.costs
    failed = len(record.trials) - len(record.ranked)
    seconds = (
        f"{costs.compile_s:.1f} s compiling, {costs.verify_s:.1f} s verifying, {costs.measure_s:.1f} s measuring, "
        f"{costs.search_s:.1f} s searching"
    )
    return [
        (
            "evaluations",
            f"{len(record.trials)} of {record.header.legal_configurations} legal, {failed} without speed"
            + (f", {record.verified_per_s:.1f} verified kernels per second" if record.verified_per_s else ""),
        ),
        ("cost", seconds),
    ]
