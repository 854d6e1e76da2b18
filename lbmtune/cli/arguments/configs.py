"""The CONFIG argument: best.json, the key of a trial or of a ranking, or the values of the axes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lbmtune.catalogue.axes import AXES, completed
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import COLLISIONS, Case
from lbmtune.cli.arguments import devices
from lbmtune.cli.files.studyfile import TABLES, load_study
from lbmtune.errors import InputError, unknown
from lbmtune.records import Environment, Resources
from lbmtune.records.best import read_best
from lbmtune.records.store import HEADER, read_study
from lbmtune.records.study import Axes, StudySpec, tables

if TYPE_CHECKING:
    from lbmtune.model.machine.description import Machine

_DIGITS = 12
_KEY = rf"[0-9a-f]{{{_DIGITS}}}"
_LIKE_A_KEY = re.compile(r"(?=.*\d)[0-9a-fA-F]{6,}")
"""Names of studies have no digits, or letters beyond f."""
_USUAL = "quick"
"""The study that gives the case unless somebody says otherwise."""
_BLOCKS = ("128x1x1", "64x1x1", "32x1x1", "32x4x1", "32x8x1")
"""Blocks that are tried, in this order, where the default one is illegal; the last for kernels of moments."""


@dataclass(frozen=True)
class Before:
    """Where a configuration was recorded, its speed there and what it was compiled to, as far as it has them."""

    made_on: Environment
    mlups: float | None
    resources: Resources | None


@dataclass(frozen=True)
class Subject:
    """What a verb is about. before: its record; None for values that somebody gave.

    ranked: whether it comes from a ranking, which keeps what it has compiled.
    """

    case: Case
    config: KernelConfig
    device: str
    bounds: devices.Bounds
    before: Before | None = None
    ranked: bool = False

    @property
    def reason(self) -> str | None:
        """Why the configuration is illegal here, or None."""
        return broken(self.case, self.config, self.bounds.limits)

    def elsewhere(self, machine: Machine) -> str:
        """That it was recorded on another device than what is said is about, in a sentence; empty where not.

        Two processors are told apart by model and cores, two GPUs by model.
        """
        made, here = self.before.made_on if self.before else None, machine.environment
        if made is None or (made.device == here.device and (made.backend != "cpu" or made.device_id == here.device_id)):
            return ""
        ours, theirs = ((f" ({one.device_id})" if one.backend == "cpu" else "") for one in (here, made))
        return f"this is for {machine.name}{ours}; the kernel was recorded on another machine, {made.device}{theirs}."

    def compiled(self, machine: Machine) -> Resources | None:
        """What the kernel uses on that machine, where it was recorded there, or compiled for it by a ranking."""
        if self.ranked and self.config.backend == "cuda" and not self.reason:
            from lbmtune.backend.cuda.compiled_cache import compiled_before  # here: it loads the code generator

            return compiled_before(self.case, machine.environment.architecture, self.config)
        return self.before.resources if self.before and not self.elsewhere(machine) else None

    def legal(self) -> Subject:
        """Itself. Raises InputError where it is illegal."""
        if self.reason:
            legal = "lbmtune list shows the values of the axes"
            what_to_do = legal if self.bounds.known else f"{legal}, and --machine h200 asks for that device's limits"
            raise InputError(f"illegal configuration{self.bounds.whose}: {self.reason}; {what_to_do}.")
        return self


def is_config(text: str) -> bool:
    """Whether an argument stands for a configuration, and not for a study."""
    return "=" in text or text.endswith(".json") or bool(re.fullmatch(_KEY, text))


def check_digits(text: str) -> None:
    """Refuses what looks like a key, or a part of one, and is none. Raises InputError."""
    if not _LIKE_A_KEY.fullmatch(text) or re.fullmatch(_KEY, text) or Path(text).exists():
        return
    wrong = f"{len(text)} hexadecimal digits" if len(text) != _DIGITS else "capital letters"
    raise InputError(
        f"{text!r} has {wrong}; a key has {_DIGITS} hexadecimal digits with small letters: copy it whole from "
        "where it is printed."
    )


def resolve(
    text: str,
    study: str | None,
    sets: Sequence[str] | None,
    device: str | None,
    out: Path,
    machine: Machine | None = None,
) -> Subject:
    """The case and configuration that CONFIG, --study and --set stand for, on a device or a machine.

    A key is that of a trial, whose case is settled, or, beside a study that is no folder of trials, that of a ranking.
    Raises InputError.
    """
    check_digits(text)
    key, file = re.fullmatch(_KEY, text), text.endswith(".json") or _is_file(text)
    if key and study and not (Path(study) / HEADER).is_file():
        found = _whole(study_spec(study, sets).case, _ranked(text, study), None, device, machine)
        return replace(found, ranked=True)
    for option, given in (("--set", sets and (key or file)), ("--study", study and file)):
        if given:
            raise InputError(f"{option} does not go with {text}, whose case is settled; leave it out.")
    if file:
        best = read_best(Path(text))
        before = Before(best.environment, best.expected.mlups, best.resources)
        return _whole(best.case, from_flat(best.configuration), before, device, machine)
    if key:
        return _whole(*find_trial(text, study, out), device, machine)
    return _from_values(text, study_spec(study, sets), device, machine)


def _is_file(text: str) -> bool:
    """Whether a text names a file; a configuration may be too long for a name."""
    try:
        return Path(text).is_file()
    except OSError:
        return False


def study_spec(reference: str | None, sets: Sequence[str] | None) -> StudySpec:
    """The study of a file, a shipped study or a study folder; quick where nobody says which. Raises InputError."""
    reference = _USUAL if reference is None else reference
    if not (Path(reference) / HEADER).is_file():
        return load_study(reference, sets or ())
    if sets:
        raise InputError(f"--set does not go with the study folder {reference}, whose case is settled; leave it out.")
    return read_study(Path(reference)).header.spec


def find_trial(key: str, study: str | None, out: Path) -> tuple[Case, KernelConfig, Before]:
    """The configuration with that key, and what is known of it: in a study folder, or in any under `out`.

    Raises InputError.
    """
    folders = [Path(study)] if study else list(_folders(out))
    for folder in folders:
        record = read_study(folder)
        for trial in record.trials:
            if trial.key == key:
                found = trial.final or trial.measurement
                before = Before(record.header.environment, found.mlups if found else None, trial.resources)
                return record.header.spec.case, from_flat(trial.config), before
    where = ", ".join(map(str, folders)) or f"{out}, which holds no study"
    give = "give its study folder with --study, or the study that was ranked"
    raise InputError(f"no trial has the key {key} in {where}; {give}.")


def _ranked(key: str, study: str) -> KernelConfig:
    """The configuration with that key from the rankings that are kept. Raises InputError."""
    from lbmtune.cli.ranking import ranked_before  # here: it loads the model

    if found := ranked_before(key):
        return found
    raise InputError(
        f"{study} is no folder of trials, and no ranking that is kept has the key {key}; lbmtune predict {study} ranks."
    )


def study_folder(reference: str, out: Path) -> Path:
    """The folder of a study, given as a path or as its name under `out`. Raises InputError."""
    for folder in (Path(reference), out / reference):
        if (folder / HEADER).is_file():
            return folder
    known = ", ".join(path.name for path in _folders(out)) or "none"
    raise InputError(f"no study at {reference}; give the folder that lbmtune study wrote (under {out}: {known}).")


def _folders(out: Path) -> Iterator[Path]:
    yield from (header.parent for header in sorted([*out.glob(HEADER), *out.glob(f"*/{HEADER}")]))


def _from_values(text: str, spec: StudySpec, device: str | None, machine: Machine | None) -> Subject:
    values = _parts(text)
    if values.get("backend", "cpu") not in AXES:
        raise unknown("backend", values["backend"], AXES)
    asked = str(values["backend"]) if "backend" in values else _backend_of(values)
    where = devices.chosen(device, asked, machine)
    backend = "cpu" if where == "cpu" else "cuda"
    if values.setdefault("backend", backend) != backend:
        raise InputError(_misplaced(f"backend={values['backend']}", str(values["backend"]), where, machine))
    check_backend(values, where, machine)
    _check_places(values, backend)
    # an axis that the study fixes to one value keeps it, unless the configuration says otherwise
    here = devices.bounds(where, machine)
    full = completed({**_precision(spec.axes[backend]), **values}, here.limits)
    return Subject(spec.case, _fitted(spec.case, full, here.limits), where, here)


def _backend_of(values: Mapping[str, int | str]) -> str | None:
    """The backend that alone has some axis of a configuration; None where all that it names are axes of both."""
    names = {backend: {axis.name for axis in axes} for backend, axes in AXES.items()}
    shared = set.intersection(*names.values())
    return next((backend for backend, mine in names.items() if (mine - shared) & values.keys()), None)


def check_backend(names: Collection[str], where: str, machine: Machine | None) -> None:
    """Refuses the axes that kernels of the other kind have."""
    backend, other = ("cpu", "cuda") if where == "cpu" else ("cuda", "cpu")
    ours, theirs = ({axis.name for axis in AXES[name]} for name in (backend, other))
    foreign = next((name for name in names if name in theirs - ours), None)
    if foreign:
        raise InputError(_misplaced(f"{foreign}, an axis of {other.upper()} kernels,", other, where, machine))


def _check_places(values: Mapping[str, int | str], backend: str) -> None:
    """Refuses what stands in a configuration by mistake: keys of the case, and values of another axis."""
    axes = {axis.name: axis.names for axis in AXES[backend]}
    for name, value in values.items():
        key = name.removeprefix("case.")
        if name not in axes and key in TABLES["case"]:
            raise InputError(f"{key} belongs to the case and not to a configuration; say --set case.{key}={value}.")
        others = [f"{other}={value}" for other, names in axes.items() if value in names]
        others += [f"--set case.collision={value}"] if value in COLLISIONS else []
        if others and axes.get(name) and value not in axes[name]:
            raise InputError(f"unknown {name} {value!r}; did you mean {' or '.join(others)}?")


def _misplaced(what: str, backend: str, where: str, machine: Machine | None) -> str:
    """Why something of a backend has no place on a device or a machine, and where it has."""
    place = devices.place(where, machine)
    if backend == "cpu":
        return f"{what} does not go with {place}, a GPU; say --device cpu{' instead' if machine else ''}."
    return (
        f"{what} does not go with {place}; say --device 0, or with explain, render and predict --machine h200, which "
        "needs no GPU."
    )


def _fitted(case: Case, values: Mapping[str, int | str], limits: Limits) -> KernelConfig:
    """The configuration; where the default block is illegal and none was said, with the first legal one.

    The default may cover a short row twice, and kernels of moments have blocks of their own.
    """
    usual = from_flat(values)
    if usual.backend != "cuda" or "block" in values or not broken(case, usual, limits):
        return usual
    blocks = (from_flat({**values, "block": block}) for block in _BLOCKS)
    return next((config for config in blocks if not broken(case, config, limits)), usual)


def _precision(axes: Axes) -> dict[str, int | str]:
    """Of the axes that a study fixes, in all its spaces, those that say what is solved to which accuracy."""
    searched = {name: {v for table in tables(axes) for v in table.get(name, ())} for name in ("storage", "compute")}
    return {name: values.pop() for name, values in searched.items() if len(values) == 1}


def _parts(text: str) -> dict[str, int | str]:
    values: dict[str, int | str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if not equals:
            raise InputError(
                f"configuration part {item!r} is not of the form axis=value; write for example scheme=aa, "
                "the 12 digits of a trial's key, or a best.json."
            )
        if name.strip() in values:
            raise InputError(f"{name.strip()} is given twice in {text!r}; leave one of them out.")
        values[name.strip()] = value.strip()
    if not values:
        raise InputError("the configuration is empty; write for example scheme=aa, a trial's key, or a best.json.")
    return values


def _whole(
    case: Case, config: KernelConfig, before: Before | None, device: str | None, machine: Machine | None
) -> Subject:
    """A configuration of which nothing is left open.

    Where no device is named nor here, what was measured before stands on the shipped machine that it ran on.
    """
    from lbmtune.cli.arguments.machines import machine_of  # here: it loads the model

    where = devices.chosen(device, config.backend, machine)
    if (where == "cpu") != (config.backend == "cpu"):
        raise InputError(_misplaced(f"a configuration for {config.backend.upper()}", config.backend, where, machine))
    here = devices.bounds(where, machine)
    if before and not here.known and device is None and (known := machine_of(before.made_on.device)):
        here = devices.bounds(where, known)
    return Subject(case, config, where, here, before)
