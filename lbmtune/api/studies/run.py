"""Run a study on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lbmtune import __version__
from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.devices import chosen, widest
from lbmtune.api.predicted.estimates import predictor
from lbmtune.api.predicted.ranking import compiler_of
from lbmtune.api.several_devices.finals import (
    check_parts,
    hold_finals_on_parts,
    say_what_failed,
    suited,
    time_for_parts,
)
from lbmtune.api.studies.accuracies import Accuracies
from lbmtune.api.studies.earlier import Found, kept, lessons, named
from lbmtune.api.studies.folders import check_folder, new_folder
from lbmtune.api.studies.results import Study
from lbmtune.backend.registry import backend_of, reports_power
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.cores import usable_cores
from lbmtune.errors import InputError, NothingValidError
from lbmtune.files.studyfile import as_spec
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.model.machine.description import Extent, Machine
from lbmtune.model.output import predicted_output
from lbmtune.records import Accuracy, made_of
from lbmtune.records.header import Ceiling, StudyHeader
from lbmtune.records.output import Output, OutputRates
from lbmtune.records.parts import PartsAsked
from lbmtune.records.remarks import last_cache
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import read_study, write_header
from lbmtune.search.clock import Clock, now
from lbmtune.search.interfaces import Observer, Search
from lbmtune.search.kinds import rounding_of
from lbmtune.search.lock import device_locks
from lbmtune.search.spaces.axes import Asked
from lbmtune.search.spaces.bounds import allowed, check_any_of, legal_of, within
from lbmtune.search.spaces.climb import climbed
from lbmtune.search.spaces.space import Space
from lbmtune.search.spaces.usual import default_of, with_default
from lbmtune.search.strategies.table import made_strategy
from lbmtune.search.strategies.transfer import Source
from lbmtune.search.study import check_same_spec, run_study

if TYPE_CHECKING:
    pass

_CEILING_AGE_S = 86400.0
"""How old the measured ceiling may be when a study begins: to measure it takes up to half a minute."""
_COMPILED_BY_A_CORE, _MOST_COMPILED = 8, 200
"""Kernels that a core compiles before the first trial, in some seconds, and how many they may be together."""


def study(
    spec: StudySpec | Case | Path | str,
    device: str | None = None,
    folder: Path | str | None = None,
    *,
    overrides: Sequence[str] = (),
    resume: bool = False,
    storage: str | None = None,
    others: Sequence[str] = (),
    parts: PartsAsked | None = None,
    refresh: bool = False,
    calibrate: bool = True,
    sources: Sequence[Path | str] | None = None,
    observer: Observer | None = None,
    scratch: Path | str | None = None,
    begun_s: float | None = None,
    machine: Machine | None = None,
) -> Study:
    """Search the fastest verified kernel of a case on a device and return the study.

    spec: a study, a case (all knobs with their usual values), a study file, or the name of a shipped study. device:
    'cpu' or the index of a GPU; None: GPU 0 if there is one. folder: where records go; None: a new one under
    lbmtune-studies. overrides: as --set, 'budget.trials=20'. resume: go on with the study in the folder. storage: URL
    of a database of Optuna, where workers join (`lbmtune.api.work`); others: further GPUs of this host that measure as
    well, all alike: device holds the finals; refresh: measure the device's bandwidths again; calibrate: do so quickly
    if the device is not known yet; sources: earlier studies to learn from, folders or names under lbmtune-studies
    (default: the most similar ones there; (): none);
    observer: is told of each trial; scratch: folder of the files of a study with output (default: the one for temporary
    files); begun_s: when the time of its budget began, on `time.monotonic` (default: now); machine: the description of
    the device, measured if left out.
    If nothing was valid, the study has no winner. Raises InputError, DeviceUnavailableError.

        >>> case = Case("box", "d3q19", "bgk", (32, 32, 32), 1.6)
        >>> few = ["budget.trials=3", "scheme=aa", "layout=soa", "threads=1"]
        >>> found = study(case, "cpu", "a-study", overrides=few)
        >>> {trial.config["scheme"] for trial in found.record.trials}, found.folder
        ({'aa'}, PosixPath('a-study'))
    """
    begun_s, watch = now() if begun_s is None else begun_s, observer or Observer()
    wanted = as_spec(spec, overrides)
    where = chosen(device, wanted.kernel_backend)
    place = new_folder(wanted.name, where, resume=resume) if folder is None else Path(folder)
    check_begins(wanted, where, place, resume=resume)
    parts = asked_parts(parts, wanted, place, resume=resume)
    if wanted.kernel:
        sources = ()
    earlier = asked_sources(sources, wanted, where, place, resume=resume)
    share = _shared(storage, place)
    known = machine or described(where, refresh=refresh, resume=resume, calibrate=calibrate)
    machine = measured_machines.borrowing(known)
    backend, expected = machine.environment.backend, predictor(wanted.case, machine)
    seconds = wanted.budget.seconds
    with (
        Evaluator(wanted.case, where, wanted.protocol, expected, others=others) as evaluator,
        device_locks(evaluator.environments),
    ):
        watch.phase("configurations that are legal", 0.0)  # in a pipe, a refusal that follows is one line
        accuracies = Accuracies(wanted.case, evaluator)
        space = searched(wanted, backend, evaluator.limits, accuracies)
        if storage is None:  # workers have the points that were drawn, which are the same for all
            asked = Asked(wanted.case, backend, allowed(evaluator.limits, wanted), wanted.families)
            space = climbed(space, asked, wanted.axes[backend], expected)
            space = space if wanted.kernel else with_default(space, asked, wanted.axes[backend])
        if parts:
            space = suited(space, wanted.case)
        prior = lessons(earlier, wanted, space.configs, machine, place, asked=earlier is not None and not resume)
        files = None if scratch is None else Path(scratch)
        rates = evaluator.output_rates(files) if wanted.output else None
        header = replace(
            study_header(wanted, machine, evaluator),
            output_rates=rates,
            legal_configurations=len(space.configs),
            illegal_configurations=space.illegal,
            ranges=space.ranges,
            drawn_from=space.legal,
            earlier=tuple(one.study for one in prior),
            parts=parts,
        )
        search = Search(
            evaluator=evaluator,
            predict=expected,
            folder=place,
            observer=watch,
            **by_accuracy(wanted, space, accuracies, [one.source for one in prior]),
            compiled=compiled_first_of(machine),
            clock=Clock(begun_s, seconds - (time_for_parts(seconds) if parts else 0.0) if seconds else inf),
            accuracy=None if wanted.kernel else accuracies.measured,
            kept_accuracy=accuracies.kept,
            sustain=evaluator.sustained,
            output=partial(evaluator.output, wanted=wanted.output, folder=files) if rates else None,
            predict_output=partial(_predicted_output, wanted.case, machine, rates) if rates else None,
            profile=partial(evaluator.losses, machine=machine),
            default=default_of(space) if storage is None else None,
        )
        with share(search, header, space) as search, suppress(NothingValidError):
            # a study without a valid kernel is recorded as well
            run_study(search, header, space, resume=resume)
    if parts and Study(place).ranked:
        _hold_on_parts(place, machine, Clock(begun_s, seconds or inf), watch)
    return Study(place)


def described(device: str, *, refresh: bool, resume: bool, calibrate: bool) -> Machine:
    """Return the description of the device of a study, measured if there is none of this day, or none of it at all."""
    extent: Extent = "quick" if calibrate else "bandwidths"
    max_age_s = None if resume else _CEILING_AGE_S
    return measured_machines.measured_machine(device, refresh=refresh, max_age_s=max_age_s, extent=extent)


def asked_parts(asked: PartsAsked | None, spec: StudySpec, folder: Path, *, resume: bool) -> PartsAsked | None:
    """Return what is asked of several devices, by a study that is resumed as it was. Raises InputError."""
    if resume:
        kept = read_study(folder).header.parts
        if asked not in (None, kept):
            raise InputError(
                f"{folder} holds a study on {_parts_text(kept)}, and this one is on {_parts_text(asked)}; resume it as "
                "it was or choose another --output."
            )
        asked = kept
    if asked:
        check_parts(spec.case, asked)
    return asked


def _parts_text(asked: PartsAsked | None) -> str:
    if asked is None:
        return "one device"
    return f"devices {','.join(asked.devices)} with cut={asked.cut}{', weak' if asked.weak else ''}"


def _hold_on_parts(folder: Path, machine: Machine, clock: Clock, observer: Observer) -> None:
    """Hold the finals on several devices, and note in the header what they left out."""
    try:
        left_out = hold_finals_on_parts(folder, machine, clock, observer)
    except NothingValidError as error:
        left_out = (say_what_failed(error),)
    header = read_study(folder).header
    write_header(folder, replace(header, left_out=(*header.left_out, *left_out)))


def _shared(storage: str | None, folder: Path) -> Share:
    """Return what makes a search the first worker of a joint study; unchanged if it is alone. Raises InputError."""
    if not storage:
        return lambda search, *_: nullcontext(search)
    from lbmtune.search.joint.ledger import open_storage  # here: Optuna loads slowly
    from lbmtune.search.joint.sharing import joint

    folder.mkdir(parents=True, exist_ok=True)
    return partial(joint, open_storage(storage))


Share = Callable[[Search, StudyHeader, Space], AbstractContextManager[Search]]


def searched(spec: StudySpec, backend: str, limits: Limits, accuracies: Accuracies) -> Space:
    """Return the configurations that a study may try on a device."""
    space = legal_of(spec, backend, limits)
    if spec.max_error is None:
        return space
    return within(space, spec.max_error, partial(accuracies.measured, brief=True))


def by_accuracy(
    spec: StudySpec, space: Space, accuracies: Accuracies, sources: Sequence[Source] = ()
) -> dict[str, Any]:
    """Return the fields of a `Search` that depend on the accuracy, which is measured first if it is an objective.

    sources: earlier studies.
    """
    made = partial(made_strategy, sources=sources)
    if "accuracy" not in spec.objectives:
        return {"strategy": made}
    one_of_each = {rounding_of(config): config for config in space.configs}
    known = {rounding: accuracies.measured(config, brief=True) for rounding, config in one_of_each.items()}

    def accuracy(config: KernelConfig) -> Accuracy | None:
        return known.get(rounding_of(config))

    return {"strategy": partial(made, accuracy=accuracy), "known_accuracy": accuracy}


def check_begins(spec: StudySpec, device: str, folder: Path, *, resume: bool) -> None:
    """Check before anything is measured that a study can begin or go on in a folder. Raises InputError."""
    backend = backend_of(device)
    _check_kernel(spec, device)
    _check_power(spec, device)
    check_folder(folder, backend, resume=resume)
    if resume:
        check_same_spec(read_study(folder).header.spec, spec, folder)
    else:
        check_any_of(spec, backend, widest(device))


def _check_kernel(spec: StudySpec, device: str) -> None:
    """Refuse a user's kernel on a device that does not run it. Raises InputError."""
    if spec.kernel and spec.kernel.backend != backend_of(device):
        needed = BACKENDS[spec.kernel.backend]
        file = f"{spec.kernel.name}{needed.suffix}"
        raise InputError(f"device={device} is not supported for {file} (use {needed.device_names}).")


def _check_power(spec: StudySpec, device: str) -> None:
    """Refuse what needs the power of a device that this process may not read. Raises InputError."""
    if spec.max_power_w is not None:
        asked = f"--max-power {spec.max_power_w:g} is not supported for device {device} (leave it out)"
    elif "energy" in spec.objectives:
        asked = f"objective=energy is not supported for device {device} (use mlups or footprint)"
    else:
        return
    if not reports_power(device):
        raise InputError(f"{asked}: this process may not read its power.")


def asked_sources(
    sources: Sequence[Path | str] | None, spec: StudySpec, device: str, folder: Path, *, resume: bool
) -> list[Found] | None:
    """Return the studies that a search learns from, if they are known before the device is. Raises InputError."""
    if resume:
        return kept(sources, read_study(folder).header, folder)
    return None if sources is None else named(sources, spec, backend_of(device))


def _predicted_output(
    case: Case, machine: Machine, rates: OutputRates, config: KernelConfig, kind: str, every: int
) -> dict[str, float]:
    """Return the seconds of an output in parts, beside steps of the predicted speed."""
    parts, _ = predicted_output(case, config, machine, rates, Output(**{kind: every}))[kind]
    return parts


def compiled_first_of(machine: Machine) -> int:
    """Return how many kernels are compiled before the first is measured if trials are counted, not seconds.

    0 if the model has no use for registers, since the machine is not calibrated, or nothing reports them.
    """
    if machine.calibration is None or not compiler_of(machine, lambda _: None):
        return 0
    return min(_MOST_COMPILED, _COMPILED_BY_A_CORE * usable_cores())


def study_header(spec: StudySpec, machine: Machine, evaluator: Evaluator) -> StudyHeader:
    """Return the header of a study that begins now, without the size of its space."""
    return StudyHeader(
        spec=spec,
        backend=machine.environment.backend,
        environment=evaluator.environment,
        ceiling=made_of(Ceiling, machine, cpu_share=machine.conditions.cpu_share),
        calibration_cpu_share=machine.calibration_cpu_share,
        calibrated_how=measured_machines.how_calibrated(machine),
        repeats=machine.quiet_repeats,
        last_cache_bytes=last_cache(machine.environment.backend, machine.caches_bytes),
        legal_configurations=0,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
    )
