"""Vary one knob around a configuration by the model, without a device."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lbmtune.api.configs import Config, config_of
from lbmtune.api.machines.devices import LOG, limits_of
from lbmtune.api.machines.shipped import as_machine
from lbmtune.api.predicted.estimates import predictor
from lbmtune.api.predicted.ranking import compiled_first, compiler_of, rank
from lbmtune.catalogue.config import (
    KernelConfig,
    Scalar,
    backend_knobs,
    completed,
    families_with,
    from_flat,
    knobs_by_name,
)
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError, unknown
from lbmtune.files.studyfile import as_spec
from lbmtune.model.machine.description import Machine
from lbmtune.records import Prediction, Resources
from lbmtune.records.legacy.configurations import name_in, names_today
from lbmtune.records.spec import StudySpec, tables
from lbmtune.search.spaces.axes import Asked, families_of, values_at


@dataclass(frozen=True)
class Variation:
    """Hold what the model expects of each value of a knob.

    predictions: by legal value, in order; illegal: the reason of each other value; compiled: whether the predictions
    know registers and spills of the compiled kernels.
    """

    knob: str
    case: Case
    around: KernelConfig
    machine: str
    predictions: dict[Scalar, Prediction]
    illegal: dict[Scalar, str]
    compiled: bool

    @property
    def facts(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "knob": self.knob,
            "case": self.case,
            "around": self.around.flat(),
            "machine": self.machine,
            "compiled": self.compiled,
            "values": [{"value": value, "prediction": found} for value, found in self.predictions.items()],
            "illegal": [{"value": value, "reason": reason} for value, reason in self.illegal.items()],
        }


def vary(
    spec: StudySpec | Case | Path | str,
    machine: Machine | Path | str,
    knob: str,
    config: Config | None = None,
    compiled: int = 200,
) -> Variation:
    """Return what the model expects of each value that a study gives to a knob, all else as in a configuration.

    spec: a study, a case, a study file or the name of a shipped study; machine: a description, a file of one or the
    name of a shipped one. config: by default the first of the study's ranking (`api.rank`, which compiles `compiled`
    kernels), whose values are compiled as well. Raises InputError.
    """
    spec, machine = as_spec(spec), as_machine(machine)
    backend = machine.environment.backend
    check_knob(knob, backend)
    if config is None:
        return _around_best(spec, machine, knob, compiled)
    base = config_of(config, spec.case, limits_of(machine), backend)
    knob = _knob_of(base, knob)
    return _variation(spec, machine, knob, base, *_configs(spec, machine, knob, base))


def check_knob(knob: str, backend: str) -> None:
    """Raise InputError if no family of a backend has a knob, by its name of today or of version 0.1."""
    if not name_in(known := backend_knobs(backend), knob):
        raise unknown(f"knob of {backend} kernels", knob, known)


def _knob_of(config: KernelConfig, knob: str) -> str:
    """Return what the family of a configuration calls a knob. Raises InputError if it has no such knob."""
    if found := name_in(config.flat(), knob):
        return found.name
    having = [family for one in names_today(knob) for family in families_with(one.name, config.backend)]
    if any(one.name in knobs_by_name(type(config)) for one in names_today(knob)):
        raise InputError(
            f"{knob} is not a knob of layout {config.memory.name}; take a configuration with another layout."
        )
    raise InputError(f"{knob} is not a knob of family {config.family} (use family {' or '.join(having)}).")


def _around_best(spec: StudySpec, machine: Machine, knob: str, compiled: int) -> Variation:
    """Vary the knob around the first of the ranking.

    If the ranking compiles kernels, all values are compiled: estimates beside them would be of another kind.
    """
    base = rank(spec, machine, 1, compiled).entries[0].config
    knob = _knob_of(base, knob)
    configs, illegal = _configs(spec, machine, knob, base)
    where = f"around {base.key}, the first of the ranking of {spec.name}"
    if not (compiled and compiler_of(machine, lambda _: None)):
        LOG.info("%s by estimates; no kernel was compiled", where)
        return _variation(spec, machine, knob, base, configs, illegal)
    architecture = machine.environment.architecture
    LOG.info("%s; the kernels of all values are compiled for %s", where, architecture)
    answers = zip(configs, compiled_first(spec.case, list(configs.values()), architecture, LOG.info), strict=True)
    resources = {}
    for value, answer in answers:
        if answer.resources is None:
            illegal[value] = f"it does not compile: {answer.reason.splitlines()[0]}"
        else:
            resources[value] = answer.resources
    legal = {value: configs[value] for value in resources}
    return _variation(spec, machine, knob, base, legal, illegal, resources)


def _configs(
    spec: StudySpec, machine: Machine, knob: str, base: KernelConfig
) -> tuple[dict[Scalar, KernelConfig], dict[Scalar, str]]:
    """Return the legal configurations by value of the knob, and the reasons of the illegal values."""
    limits = limits_of(machine)
    rest = {name: value for name, value in base.flat().items() if (knob, name) != ("storage", "compute")}
    values = _values(spec, Asked(spec.case, base.backend, limits, spec.families), knob, base)
    configs = {value: from_flat(completed({**rest, knob: value}, limits)) for value in values}
    reasons = {value: broken(spec.case, config, limits) for value, config in configs.items()}
    legal = {value: config for value, config in configs.items() if not reasons[value]}
    return legal, {value: reason for value, reason in reasons.items() if reason}


def _variation(
    spec: StudySpec,
    machine: Machine,
    knob: str,
    base: KernelConfig,
    configs: Mapping[Scalar, KernelConfig],
    illegal: dict[Scalar, str],
    resources: Mapping[Scalar, Resources] | None = None,
) -> Variation:
    """Predict all values. resources: of every configuration, if they were compiled."""
    expected, compiled = predictor(spec.case, machine), resources or {}
    predictions = {value: expected(config, resources=compiled.get(value)) for value, config in configs.items()}
    return Variation(knob, spec.case, base, machine.name, predictions, illegal, resources is not None)


def _values(spec: StudySpec, asked: Asked, knob: str, base: KernelConfig) -> list[Scalar]:
    """Return the values of the study and that of the configuration: numbers by size, names as the study has them."""
    backend = base.backend
    spaces = [one for one in tables(spec.axes[backend]) if type(base) in families_of(backend, one, spec.families)]
    given = [value for table in spaces for value in table.get(knob, ())] or values_at(asked, base, knob)
    found = list(dict.fromkeys((*given, base.flat()[knob])))
    return sorted(found) if all(isinstance(value, int) for value in found) else found
