"""One axis varied around a configuration: what the model expects of each of its values, without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lbmtune.errors import unknown
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lbmtune.catalogue.config import KernelConfig, Scalar
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.model.machine.description import Machine
    from lbmtune.records import Prediction, Resources
    from lbmtune.records.study import StudySpec


_BAR = 12
"""Characters of the longest bar."""


@dataclass(frozen=True)
class Varied:
    """predictions: by value of the axis, in order; illegal: why the other values are.

    compiled: whether predictions know what the kernels were compiled to.
    """

    axis: str
    case: Case
    around: KernelConfig
    machine: str
    predictions: dict[Scalar, Prediction]
    illegal: dict[Scalar, str]
    compiled: bool

    @property
    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "axis": self.axis,
            "case": self.case,
            "around": self.around.flat(),
            "machine": self.machine,
            "compiled": self.compiled,
            "values": [{"value": value, "prediction": found} for value, found in self.predictions.items()],
            "illegal": [{"value": value, "reason": reason} for value, reason in self.illegal.items()],
        }

    @property
    def title(self) -> str:
        """What is varied, around what, and where; below it, of what case."""
        from lbmtune.report.titles import subject

        return f"{self.axis} around {self.around.said} on {self.machine}\n{subject(self.case, [])}"


def check_axis(axis: str, backend: str) -> None:
    """Raises InputError where kernels of a backend have no such axis."""
    from lbmtune.catalogue.axes import AXES

    names = [one.name for one in AXES[backend]]
    if axis not in names:
        raise unknown(f"axis of {backend} kernels", axis, names)


def around_best(spec: StudySpec, described: Machine, axis: str, compiled: int) -> Varied:
    """The values that a study gives to an axis, all else as in the first of its ranking (`cli.ranking`).

    Where the ranking compiles its first kernels, those of all values are compiled, too: estimates beside them would be
    of another kind. axis: one that kernels for this machine have (`check_axis`).
    """
    from lbmtune.cli.format.output import note
    from lbmtune.cli.ranking import compiled_first, compiler_of, ranking

    base = ranking(spec, described, 1, compiled, note).entries[0].config
    configs, illegal = _configs(spec, described, axis, base)
    where = f"around {base.key}, the first of the ranking of {spec.name}"
    if not (compiled and compiler_of(described, lambda _: None)):
        note(f"{where} by estimates; no kernel was compiled")
        return _varied(spec, described, axis, base, configs, illegal)
    architecture = described.environment.architecture
    note(f"{where}; the kernels of all values are compiled for {architecture}")
    answers = zip(configs, compiled_first(spec.case, list(configs.values()), architecture, note), strict=True)
    resources = {}
    for value, answer in answers:
        if answer.resources is None:
            illegal[value] = f"it does not compile: {answer.reason.splitlines()[0]}"
        else:
            resources[value] = answer.resources
    return _varied(spec, described, axis, base, {value: configs[value] for value in resources}, illegal, resources)


def around(spec: StudySpec, described: Machine, axis: str, base: KernelConfig) -> Varied:
    """The values that a study gives to an axis, all else as in a configuration, by estimates.

    axis: one that kernels for this machine have (`check_axis`).
    """
    return _varied(spec, described, axis, base, *_configs(spec, described, axis, base))


def _configs(
    spec: StudySpec, described: Machine, axis: str, base: KernelConfig
) -> tuple[dict[Scalar, KernelConfig], dict[Scalar, str]]:
    """The legal configurations by value of the axis, and why the other values are illegal."""
    from lbmtune.catalogue.axes import completed
    from lbmtune.catalogue.config import from_flat
    from lbmtune.catalogue.families.rules import broken
    from lbmtune.cli.arguments.devices import limits_of

    limits = limits_of(described)
    rest = {name: value for name, value in base.flat().items() if (axis, name) != ("storage", "compute")}
    values = _values(spec, described.environment.backend, axis, base)
    configs = {value: from_flat(completed({**rest, axis: value}, limits)) for value in values}
    reasons = {value: broken(spec.case, config, limits) for value, config in configs.items()}
    legal = {value: config for value, config in configs.items() if not reasons[value]}
    return legal, {value: reason for value, reason in reasons.items() if reason}


def _varied(
    spec: StudySpec,
    described: Machine,
    axis: str,
    base: KernelConfig,
    configs: Mapping[Scalar, KernelConfig],
    illegal: dict[Scalar, str],
    resources: Mapping[Scalar, Resources] | None = None,
) -> Varied:
    """resources: of all configurations, where they were compiled."""
    from lbmtune.cli.arguments.devices import predictor

    expected, known = predictor(spec.case, described), resources or {}
    predictions = {value: expected(config, resources=known.get(value)) for value, config in configs.items()}
    return Varied(axis, spec.case, base, described.name, predictions, illegal, resources is not None)


def _values(spec: StudySpec, backend: str, axis: str, base: KernelConfig) -> list[Scalar]:
    """Numbers by size, names as the study has them; that of the configuration itself among them."""
    from lbmtune.records.study import tables

    given = [value for table in tables(spec.axes[backend]) for value in table.get(axis, ())]
    found = list(dict.fromkeys((*given, base.flat()[axis])))
    return sorted(found) if all(isinstance(value, int) for value in found) else found


def alone(found: Varied, *, settled: bool) -> str:
    """That there is nothing to compare, and what to do, in a sentence; empty where there is.

    settled: the configuration has a record, with whose case --set does not go.
    """
    from lbmtune.catalogue.axes import AXES

    values = [*found.predictions, *found.illegal]
    if len(values) > 1:
        return ""
    axis = next(axis for axis in AXES[found.around.backend] if axis.name == found.axis)
    others = [value for value in (*axis.values, *axis.names) if value not in values]
    more = f"--set {axis.name}={','.join(map(str, [*values, *dict.fromkeys(others)][:3])) if others else 'A,B,C'}"
    how = f"add others with {more}"
    if settled:
        how = f"beside a best.json name a study that has others with --study, or give axis=value,... and {more}"
    return f"only the values of the study are compared, and it gives {axis.name} none but {values[0]}; {how}."


def print_varied(found: Varied) -> None:
    """As a table, with a bar that is as long as the speed."""
    from lbmtune.cli.format import output
    from lbmtune.cli.format.ranking_table import binding

    best = max((one.mlups for one in found.predictions.values()), default=1.0)
    here = found.around.flat()[found.axis]
    rows = [
        (
            _marked(value, here),
            format_mlups(one.mlups),
            "#" * round(_BAR * one.mlups / best),
            binding(one),
        )
        for value, one in found.predictions.items()
    ]
    rows += [(str(value), "-", "", f"illegal: {reason}") for value, reason in found.illegal.items()]
    output.stdout().print(output.table(found.title, (found.axis, "MLUPS>", "", "limit"), rows))


def _marked(value: Scalar, here: Scalar) -> str:
    """With a star where the configuration stands."""
    return f"{value} *" if value == here else str(value)
