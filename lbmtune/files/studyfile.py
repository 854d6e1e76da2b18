"""Study files: TOML to StudySpec, with overrides. Every error names file, line and key."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import Any

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import FAMILIES, backend_knobs
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import WALL_RULES, Patch
from lbmtune.catalogue.problem.flows import FLOWS
from lbmtune.catalogue.problem.parameter_text import GeometryError
from lbmtune.errors import InputError, suggestion
from lbmtune.files import budgetfile, limitsfile
from lbmtune.files.axesfile import AxesFile, known_keys, restrictions, spaces, usual_spaces
from lbmtune.files.budgetfile import BudgetFile
from lbmtune.files.casefile import CaseFile, case_of, identified
from lbmtune.files.limitsfile import AccuracyFile, LimitsFile
from lbmtune.files.override import backends, override
from lbmtune.files.ranges import INTERVAL, SEED, SPEED, check, check_protocol
from lbmtune.files.shipped import find_study
from lbmtune.files.source import Source, read_text
from lbmtune.files.trees import converted, parsed
from lbmtune.lattice import LATTICES
from lbmtune.records import made_of
from lbmtune.records.output import Output
from lbmtune.records.spec import ALL_FAMILIES, OBJECTIVES, Axes, StudySpec, TimingProtocol, tables

LOG = logging.getLogger("lbmtune")
STRATEGIES = ("auto", "list", "gp", "tpe", "cmaes", "nsga2", "random", "exhaustive")
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")  # it names a folder, whose name has up to 255 letters


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The tables of a study file.

    objective: one, or several of which a Pareto set is searched; families: "all", or names of families, whose
    values are made where [axes] does not give them.
    """

    name: str
    case: CaseFile
    objective: str | tuple[str, ...] = "mlups"
    strategy: str = "auto"
    seed: int = 1
    families: str | tuple[str, ...] = ()
    budget: BudgetFile = field(default_factory=BudgetFile)
    protocol: TimingProtocol = field(default_factory=TimingProtocol)
    limits: LimitsFile = field(default_factory=LimitsFile)
    accuracy: AccuracyFile = field(default_factory=AccuracyFile)
    output: Output = field(default_factory=Output)
    axes: dict[str, AxesFile] = field(default_factory=dict)


TABLES: Mapping[str, tuple[str, ...]] = {
    "": tuple(f.name for f in fields(StudyFile)),
    "case": tuple(f.name for f in fields(CaseFile)),
    "case.patches": tuple(f.name for f in fields(Patch)),
    "budget": tuple(f.name for f in fields(BudgetFile)),
    "protocol": tuple(f.name for f in fields(TimingProtocol)),
    "limits": tuple(f.name for f in fields(LimitsFile)),
    "accuracy": tuple(f.name for f in fields(AccuracyFile)),
    "output": tuple(f.name for f in fields(Output)),
    "axes": tuple(FAMILIES),
    **{f"axes.{backend}": known_keys(backend) for backend in FAMILIES},
}
"""The keys of each table."""
_SUGGESTED = {**TABLES, **{f"axes.{backend}": tuple(backend_knobs(backend)) for backend in FAMILIES}}
"""The same without knobs of version 0.1."""

_NAMES: Mapping[str, Iterable[str]] = {
    "case.flow": FLOWS,
    "case.lattice": LATTICES,
    "case.collision": COLLISIONS,
    "case.walls": WALL_RULES,
    "strategy": STRATEGIES,
}

UNSTABLE_RATE = 1.95
"""Relaxation rates above it that follow from Reynolds number or viscosity get a warning."""


def as_spec(study: StudySpec | Case | Path | str, overrides: Sequence[str] = ()) -> StudySpec:
    """Return a study given as one, as a case (all knobs with their usual values), as a file or by its shipped name.

    overrides: 'key=value'. Raises InputError.
    """
    if isinstance(study, (str, Path)):
        return load_study(str(study), overrides)
    if isinstance(study, Case):
        case = identified(study)
        axes = {backend: usual_spaces(case, backend) for backend in FAMILIES}
        study = StudySpec(name=case.flow, case=case, axes=axes)
    return overridden(study, overrides)


def load_study(reference: str, overrides: Sequence[str] = ()) -> StudySpec:
    """Return the study of a file, or the shipped study of that name. overrides: 'key=value'. Raises InputError."""
    path = find_study(reference)
    return parse_study(read_text(path), str(path), overrides, path.parent)


BASE_STUDY = "box"
"""The shipped study that a case without a file differs from."""


def base_study(overrides: Sequence[str] = ()) -> StudySpec:
    """Return the study of a case without a file: 'key=value' that differ from a periodic box. Raises InputError.

    It is named after the flow.
    """
    given = {key.strip(): value.strip() for key, _, value in (item.partition("=") for item in overrides)}
    named = [f"name={given['case.flow']}"] if "case.flow" in given else []
    return load_study(BASE_STUDY, [*named, *overrides])


def parse_study(text: str, name: str, overrides: Sequence[str] = (), folder: Path = Path()) -> StudySpec:
    """Return the study of a text. folder: where its relative paths begin. Raises InputError."""
    return _of_tree(parsed(text, name), Source(name, text, folder=folder), overrides)


def overridden(kept: StudySpec, overrides: Sequence[str]) -> StudySpec:
    """Return a study with 'key=value' overrides. Raises InputError."""
    if not overrides:
        return kept
    return _of_tree(_tree(kept), Source("the study", ""), overrides)


def _of_tree(tree: dict[str, Any], source: Source, overrides: Sequence[str]) -> StudySpec:
    first = sorted(overrides, key=lambda item: item.partition("=")[0].strip() != "families")  # it decides on knobs
    keys = [override(tree, item, TABLES) for item in first]
    source = replace(source, overridden=frozenset(key for several in keys for key in several))
    _check_keys(tree, "", source)
    for key, known in _NAMES.items():
        table, _, last = key.rpartition(".")
        value = (tree.get(table, {}) if table else tree).get(last)
        if isinstance(value, str):
            source.check_name(key, value, known)
    return _spec(converted(tree, StudyFile, source), source)


def check_acts(overrides: Sequence[str], backend: str, place: str) -> None:
    """Refuse overrides of knobs that only kernels of another backend have. Raises InputError.

    place: the device or the machine in words.
    """
    for item in overrides:
        kinds = backends(item, TABLES)
        if kinds and backend not in kinds:
            raise InputError(
                f"--set {item} acts on {', '.join(kinds).upper()} kernels alone, and {place} runs {backend.upper()} "
                f"kernels; leave it out, or set one of their knobs, which lbmtune list shows."
            )


def _tree(spec: StudySpec) -> dict[str, Any]:
    """Return the tree of the study file that says the same."""
    case = spec.case
    flow: dict[str, Any] = {name: getattr(case, name) for name in TABLES["case"] if hasattr(case, name)}
    along = max(range(3), key=lambda axis: abs(case.force[axis]))
    flow |= {"force": case.force[along], "axis": "xyz"[along]}
    flow["patches"] = [asdict(patch) for patch in case.patches]
    if "moving" in case.faces:
        flow["lid"] = case.wall_velocity[0]
    return {
        "name": spec.name,
        "families": list(spec.families),
        "objective": list(spec.objectives) if spec.beside else spec.objective,
        "strategy": spec.strategy,
        "seed": spec.seed,
        "case": flow,
        "budget": budgetfile.tree_of(spec.budget),
        "protocol": asdict(spec.protocol),
        "output": asdict(spec.output),
        "limits": limitsfile.tree_of(spec),
        "axes": {backend: _plain(axes) for backend, axes in spec.axes.items()},
    }


def _plain(axes: Axes) -> AxesFile:
    plain = [{name: list(values) for name, values in table.items()} for table in tables(axes)]
    return plain[0] if isinstance(axes, Mapping) else plain


def _check_keys(tree: Mapping[str, Any], table: str, source: Source, at: str = "") -> None:
    """Refuse unknown keys. at: the key of the table if it is one of several."""
    for key, value in tree.items():
        dotted, place = (f"{one}.{key}" if one else key for one in (table, at or table))
        if key not in TABLES[table]:
            source.fail(place, f"unknown key; {suggestion(key, _SUGGESTED[table])}")
        if dotted in TABLES:
            _check_table(value, dotted, source)


def _check_table(value: object, key: str, source: Source) -> None:
    """Check that a value is a table with known keys; axes and patches may be several."""
    each = {key: value}
    if isinstance(value, (list, tuple)) and (key == "case.patches" or (value and key.startswith("axes."))):
        each = {f"{key}[{n}]": one for n, one in enumerate(value, 1)}
    for place, one in each.items():
        if not isinstance(one, Mapping):
            head = f"[[{key}]]" if key == "case.patches" else f"[{key}]"
            source.fail(place, f"is a table; write {head} and its keys below.")
        _check_keys(one, key, source, place)


def _spec(file: StudyFile, source: Source) -> StudySpec:
    if not _NAME.fullmatch(file.name):
        source.fail(
            "name", f"{file.name!r} is not a file name of up to 200 letters, digits, '.', '_' and '-'; correct it."
        )
    check(file.seed, SEED, "seed", source, "choose another seed.")
    check_protocol(file.protocol, source)
    for kind, every in asdict(file.output).items():
        check(every, INTERVAL, f"output.{kind}", source, "give a number of time steps, or 0 for no output.")
    case = _case(file.case, source)
    families = (file.families,) if isinstance(file.families, str) else file.families
    for name in families:
        source.check_name("families", name, (ALL_FAMILIES, *dict.fromkeys(chain(*FAMILIES.values()))))
    return made_of(
        StudySpec,
        file,
        case=case,
        **_objectives(file.objective, source),
        families=families,
        axes={backend: _axes(file.axes.get(backend), backend, case, families, source) for backend in FAMILIES},
        budget=budgetfile.budget(file.budget, source),
        **limitsfile.limits(file.limits, file.accuracy, source),
    )


def _objectives(given: str | tuple[str, ...], source: Source) -> dict[str, Any]:
    """Return the objective that decides and those beside it, as fields of a `StudySpec`."""
    names = (given,) if isinstance(given, str) else given
    for name in names:
        source.check_name("objective", name, OBJECTIVES)
    if not names or len(set(names)) < len(names):
        source.fail("objective", f"{', '.join(names) or 'none'}: give one or several, each once.")
    return {"objective": names[0], "beside": names[1:]}


def _axes(given: AxesFile | None, backend: str, case: Case, families: tuple[str, ...], source: Source) -> Any:
    """Return the spaces of a backend: of which all values are made, those that are given, or the usual ones."""
    if families:
        return restrictions(given or {}, backend, families, source)
    return usual_spaces(case, backend) if given is None else spaces(given, backend, source)


def _case(file: CaseFile, source: Source) -> Case:
    for key in TABLES["case"]:
        for place, value in _numbers(getattr(file, key), f"case.{key}"):
            if not isfinite(value):
                source.fail(place, f"{value} is not a finite number; correct the value.")
    for key in ("lid", "velocity_scale"):
        check(getattr(file, key), SPEED, f"case.{key}", source)
    try:
        case = case_of(file, Path() if "case.geometry" in source.overridden else source.folder)
    except GeometryError as error:
        source.fail("case.geometry", str(error))
    except InputError as error:
        source.fail(_key_of(str(error)), str(error))
    if file.relaxation_rate is None and case.relaxation_rate > UNSTABLE_RATE:
        LOG.warning(
            f"relaxation_rate {case.relaxation_rate:.4g} is close to 2: the flow itself may become unstable on this "
            f"domain; use a larger domain or {'a lower reynolds' if file.reynolds else 'a higher viscosity'}."
        )
    return case


def _numbers(value: object, key: str) -> Iterator[tuple[str, float]]:
    """Return the numbers of a field, each with its key; those of a patch have the key of the patch."""
    if isinstance(value, Patch):
        yield from ((key, number) for part in astuple(value) for _, number in _numbers(part, key))
    elif isinstance(value, tuple):
        for n, part in enumerate(value, 1):
            yield from _numbers(part, f"{key}[{n}]" if isinstance(part, Patch) else key)
    elif isinstance(value, float):
        yield key, value


def _key_of(message: str) -> str:
    """Return the key of the case that a message is about: the first one that it names."""
    patch = re.match(r"patches: (?:numbers \d+ and |number )(\d+)", message)
    if patch:
        return f"case.patches[{patch[1]}]"
    named = re.search(rf"\b({'|'.join(TABLES['case'])})\b", message)
    return f"case.{named[1]}" if named else "case"
