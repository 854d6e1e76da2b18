"""The CONFIG argument: best.json, the key of a trial or of a ranking, or the values of the knobs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lbmtune import api
from lbmtune.api.configs import LOG, backend_of_knobs, current_values, fitted, known_names, parse_values
from lbmtune.api.machines import devices
from lbmtune.api.machines.shipped import machine_of, named_machine
from lbmtune.api.studies.folders import study_folders
from lbmtune.backend.registry import backend_of
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import FAMILIES, KernelConfig, Scalar, backend_knobs, completed
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.cli.arguments.kernels import of_catalogue
from lbmtune.cli.arguments.options import Options
from lbmtune.errors import InputError, unknown
from lbmtune.files.casefile import domain_of
from lbmtune.files.studyfile import TABLES, check_acts, load_study
from lbmtune.model.machine.description import Machine
from lbmtune.records import Environment, Resources
from lbmtune.records.best_json.document import read_best
from lbmtune.records.legacy.configurations import previous_key
from lbmtune.records.output import Output
from lbmtune.records.spec import Axes, StudySpec, tables
from lbmtune.records.store import read_study
from lbmtune.records.whole_files import HEADER

_DIGITS = 12
_KEY = rf"[0-9a-f]{{{_DIGITS}}}"
_LIKE_A_KEY = re.compile(r"(?=.*\d)[0-9a-fA-F]{6,}")
"""Names of studies have no digits, or letters beyond f."""
_USUAL = "quick"
"""The study that gives the case by default."""
_INSTEAD = {
    "cpu": "--device cpu",
    "cuda": "--device 0, or with explain, render and predict --machine h200, which needs no GPU",
}
"""The option with which a configuration of a backend has its place."""


@dataclass(frozen=True)
class Recorded:
    """The place where a configuration was measured, its speed and compiled resources there; None if unknown.

    domain: of the case; parts: on how many parts it won, 0 of a study of one device.
    """

    made_on: Environment
    mlups: float | None
    resources: Resources | None
    domain: tuple[int, int, int]
    parts: int = 0


@dataclass(frozen=True)
class Subject:
    """The case, configuration and device of a verb.

    recorded: None for values given as text; ranked: the configuration comes from a ranking, whose kernels are cached.
    output: of the study.
    """

    case: Case
    config: KernelConfig
    device: str
    bounds: devices.Bounds
    recorded: Recorded | None = None
    ranked: bool = False
    output: Output = field(default_factory=Output)

    @property
    def reason(self) -> str | None:
        """Return why the configuration is illegal here, or None."""
        return broken(self.case, self.config, self.bounds.limits)

    def other_device(self, machine: Machine) -> str:
        """Return a sentence if it was recorded on another device than a machine; else an empty text.

        Two processors differ by model and cores, two GPUs by model.
        """
        made, here = self.recorded.made_on if self.recorded else None, machine.environment
        host = BACKENDS[here.backend].shares_host
        if made is None or (made.device == here.device and (not host or made.device_id == here.device_id)):
            return ""
        ours, theirs = (f" ({one.device_id})" if BACKENDS[one.backend].shares_host else "" for one in (here, made))
        return f"this is for {machine.name}{ours}; the kernel was recorded on another machine, {made.device}{theirs}."

    def compiled(self, machine: Machine) -> Resources | None:
        """Return the resources of the kernel if it was recorded on that machine, or compiled for it by a ranking."""
        if self.ranked and BACKENDS[self.config.backend].reports_resources and not self.reason:
            return api.compiled_before(self.case, machine.environment.architecture, self.config)
        return self.recorded.resources if self.recorded and not self.other_device(machine) else None

    def measured(self, machine: Machine) -> float | None:
        """Return the speed of one device like a machine, if the kernel was recorded on one and on this domain."""
        found = self.recorded
        here = found is not None and not self.other_device(machine) and found.domain == self.case.domain
        return found.mlups if found and here and not found.parts else None

    def legal(self) -> Subject:
        """Return itself. Raises InputError if it is illegal."""
        if self.reason:
            legal = "lbmtune list shows the values of the knobs"
            what_to_do = legal if self.bounds.known else f"{legal}, and --machine h200 asks for that device's limits"
            raise InputError(f"illegal configuration{self.bounds.place}: {self.reason}; {what_to_do}.")
        return self


def named(subject: Subject) -> dict[str, Any]:
    """Return case, configuration and key as --json of all verbs has them."""
    return {"case": subject.case, "config": subject.config.flat(), "key": subject.config.key}


def is_config(text: str) -> bool:
    """Return whether an argument names a configuration, and not a study."""
    return "=" in text or text.endswith(".json") or bool(re.fullmatch(_KEY, text))


def check_key(text: str) -> None:
    """Refuse what looks like a key, or a part of one, and is none. Raises InputError."""
    if not _LIKE_A_KEY.fullmatch(text) or re.fullmatch(_KEY, text) or Path(text).exists():
        return
    wrong = f"{len(text)} hexadecimal digits" if len(text) != _DIGITS else "capital letters"
    raise InputError(
        f"{text!r} has {wrong}; a key has {_DIGITS} hexadecimal digits with small letters: copy it whole from "
        "where it is printed."
    )


def other_machine(options: Options) -> Machine | None:
    """Return the machine of --machine, which stands in the place of --device, or None. Raises InputError."""
    name, device = options.machine, options.device
    if name is not None and device is not None:
        raise InputError(f"--machine {name} stands in the place of --device {device}; leave one of them out.")
    return None if name is None else named_machine(name)


def resolve(text: str, options: Options) -> Subject:
    """Return the case and configuration that CONFIG, --study and --set name, on a device or a machine.

    A key is that of a trial, which has its case, or, beside a study that is no folder of trials, that of a ranking.
    Raises InputError.
    """
    machine, study = other_machine(options), options.study
    check_key(text)
    key, file = re.fullmatch(_KEY, text), text.endswith(".json") or _is_file(text)
    if key and study and not (Path(study) / HEADER).is_file():
        spec = study_spec(options)
        found = _placed(spec.case, _ranked(text, study), None, options.device, machine)
        return replace(found, ranked=True, output=spec.output)
    if study and file:
        raise InputError(f"--study does not go with {text}, whose case is settled; leave it out.")
    if file:
        best = read_best(Path(text))
        parts = best.parts.devices if best.parts else 0
        recorded = Recorded(best.environment, best.expected.mlups, best.resources, best.case.domain, parts)
        return _of_record(best.case, best.config, recorded, text, options)
    if key:
        case, config, measured = _find_trial(text, study, options.studies)
        return _of_record(case, config, measured, text, options)
    spec = settled(study_spec(options), options.geometry)
    return replace(_from_values(text, spec, options.device, machine), output=spec.output)


def settled(spec: StudySpec, geometry: Path | None) -> StudySpec:
    """Return a recorded study with its voxel file, if it has one, where --geometry says. Raises InputError."""
    return replace(spec, case=_settled(spec.case, geometry))


def _of_record(case: Case, config: KernelConfig, recorded: Recorded, text: str, options: Options) -> Subject:
    """Return the subject of a record, on another domain if --set says so. Raises InputError."""
    case = _settled(case, options.geometry)
    for item in options.sets or ():
        from lbmtune.runtime.solver import changed  # here: arrays are not needed otherwise

        key, _, value = item.partition("=")
        if key.strip() != "case.domain":
            settled_but = "whose case is settled but for case.domain"
            raise InputError(f"--set {key} does not go with {text}, {settled_but}; leave it out.")
        case = changed(case, case, {"domain": domain_of(value.strip(), case.lattice)})
        recorded = replace(recorded, mlups=None)
    return _placed(case, config, recorded, options.device, other_machine(options))


def _settled(case: Case, geometry: Path | None) -> Case:
    if not case.geometry and geometry is None:
        return case
    from lbmtune.catalogue.problem.patch_checks import settled  # here: arrays are not needed otherwise

    return settled(case, geometry)


def _is_file(text: str) -> bool:
    """Return whether a text names a file; a configuration may be too long for a name."""
    try:
        return Path(text).is_file()
    except OSError:
        return False


def study_spec(options: Options) -> StudySpec:
    """Return the study of a file, a shipped study or a study folder (default: quick). Raises InputError."""
    reference = _USUAL if options.study is None else options.study
    if not (Path(reference) / HEADER).is_file():
        if options.geometry and options.study:
            path = options.geometry
            raise InputError(
                f"--geometry {path} does not go with {reference}; say --set case.geometry=file:path={path}."
            )
        return load_study(reference, options.sets or ())
    if options.sets:
        raise InputError(f"--set does not go with the study folder {reference}, whose case is settled; leave it out.")
    return settled(of_catalogue(read_study(Path(reference)).header.spec, Path(reference)), options.geometry)


def searched(options: Options) -> tuple[StudySpec, str, Machine | None]:
    """Return a study whose space is asked for, the device, and the machine in its place. Raises InputError."""
    machine = other_machine(options)
    where = devices.chosen(options.device, machine=machine)
    spec = study_spec(options)
    check_acts(options.sets or (), backend_of(where), devices.place(where, machine))
    return spec, where, machine


def _find_trial(key: str, study: str | None, studies: Path) -> tuple[Case, KernelConfig, Recorded]:
    """Return case, configuration and record of a trial: from a study folder, or from any under `studies`.

    Raises InputError.
    """
    folders = [Path(study)] if study else list(study_folders(studies))
    for folder in folders:
        record = read_study(folder)
        for trial in record.trials:
            if trial.key == key or previous_key(trial.kernel_config) == key:
                if record.header.spec.kernel:
                    raise InputError(
                        f"{key} is of a kernel of your own, which no file here names; run it again with "
                        "lbmtune study --kernel FILE."
                    )
                if trial.key != key:
                    LOG.info("%s was its key in version 0.1; today it is %s", key, trial.key)
                found = trial.final or trial.measurement
                case, speed = record.header.spec.case, found.mlups if found else None
                recorded = Recorded(record.header.environment, speed, trial.resources, case.domain)
                return case, trial.kernel_config, recorded
    where = ", ".join(map(str, folders)) or f"{studies}, which holds no study"
    give = "give its study folder with --study, or the study that was ranked"
    raise InputError(f"no trial has the key {key} in {where}; {give}.")


def _ranked(key: str, study: str) -> KernelConfig:
    if found := api.ranked_before(key):
        return found
    raise InputError(
        f"{study} is no folder of trials, and no ranking that is kept has the key {key}; lbmtune predict {study} ranks."
    )


def _from_values(text: str, spec: StudySpec, device: str | None, machine: Machine | None) -> Subject:
    values = parse_values(text)
    if values.get("backend", "cpu") not in FAMILIES:
        raise unknown("backend", values["backend"], FAMILIES)
    where = devices.chosen(device, backend_of_knobs(values), machine)
    backend = backend_of(where)
    if values.setdefault("backend", backend) != backend:
        raise InputError(_misplaced(f"backend={values['backend']}", str(values["backend"]), where, machine))
    check_backend(values, where, machine, str(values.get("family", "")))
    values = current_values(values)
    _check_places(values, backend)
    # a knob that the study fixes to one value keeps it, unless the configuration says otherwise
    here = devices.bounds(where, machine)
    full = completed({**_precision(spec.axes[backend]), **values}, here.limits)
    return Subject(spec.case, fitted(spec.case, full, here.limits), where, here)


def check_backend(names: Collection[str], where: str, machine: Machine | None, family: str = "") -> None:
    """Refuse knobs, and a family, that only kernels of other backends have. Raises InputError."""
    backend, knobs = backend_of(where), {name: known_names(name) for name in FAMILIES}
    asked: list[tuple[str, str, Mapping[str, Collection[str]]]] = [(f"{name}, a knob", name, knobs) for name in names]
    for what, name, known in (*asked, (f"family={family}, a family", family, FAMILIES)):
        owners = [other for other in known if name in known[other]]
        if owners and backend not in owners:
            raise InputError(_misplaced(f"{what} of {owners[0].upper()} kernels,", owners[0], where, machine))


def _check_places(values: Mapping[str, Scalar], backend: str) -> None:
    """Refuse keys of the case, and values of another knob. Raises InputError."""
    axes = {name: one.allowed if one.is_name else () for name, one in backend_knobs(backend).items()}
    for name, value in values.items():
        key = name.removeprefix("case.")
        if name not in axes and key in TABLES["case"]:
            raise InputError(f"{key} belongs to the case and not to a configuration; say --set case.{key}={value}.")
        others = [f"{other}={value}" for other, names in axes.items() if value in names]
        others += [f"--set case.collision={value}"] if value in COLLISIONS else []
        if others and axes.get(name) and value not in axes[name]:
            raise InputError(f"unknown {name} {value!r}; did you mean {' or '.join(others)}?")


def _misplaced(what: str, backend: str, where: str, machine: Machine | None) -> str:
    """Return why a configuration of a backend does not go with a device or a machine, and with which it does."""
    host = BACKENDS[backend].shares_host
    other, instead = ", a GPU" if host else "", " instead" if host and machine else ""
    return f"{what} does not go with {devices.place(where, machine)}{other}; say {_INSTEAD[backend]}{instead}."


def _precision(axes: Axes) -> dict[str, Scalar]:
    """Return the precisions that a study fixes to one value in all its spaces."""
    searched = {name: {v for table in tables(axes) for v in table.get(name, ())} for name in ("storage", "compute")}
    return {name: values.pop() for name, values in searched.items() if len(values) == 1}


def _placed(
    case: Case, config: KernelConfig, recorded: Recorded | None, device: str | None, machine: Machine | None
) -> Subject:
    """Return the subject of a whole configuration.

    If no device is named nor here, its limits are those of the shipped machine on which it was recorded.
    """
    where = devices.chosen(device, config.backend, machine)
    if backend_of(where) != config.backend:
        raise InputError(_misplaced(f"a configuration for {config.backend.upper()}", config.backend, where, machine))
    here = devices.bounds(where, machine)
    if recorded and not here.known and device is None and (known := machine_of(recorded.made_on.device)):
        here = devices.bounds(where, known)
    return Subject(case, config, where, here, recorded)
