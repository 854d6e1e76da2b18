"""One axis varied around a configuration: what the model expects of each of its values, without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lbmtune.errors import unknown
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from lbmtune.catalogue.case import Case
    from lbmtune.catalogue.config import KernelConfig, Scalar
    from lbmtune.model.machine import Machine
    from lbmtune.records import Prediction
    from lbmtune.records.study import StudySpec


_BAR = 12
"""Characters of the longest bar."""


@dataclass(frozen=True)
class Varied:
    """predictions: by value of the axis, in order; illegal: why the other values are."""

    axis: str
    case: Case
    around: KernelConfig
    machine: str
    predictions: dict[Scalar, Prediction]
    illegal: dict[Scalar, str]

    @property
    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "axis": self.axis,
            "case": self.case,
            "around": self.around.flat(),
            "machine": self.machine,
            "values": [{"value": value, "prediction": found} for value, found in self.predictions.items()],
            "illegal": [{"value": value, "reason": reason} for value, reason in self.illegal.items()],
        }

    @property
    def title(self) -> str:
        """What is varied, around what, and where; below it, of what case."""
        from lbmtune.report.info import subject

        return f"{self.axis} around {self.around.brief} on {self.machine}\n{subject(self.case, [])}"


def check_axis(axis: str, backend: str) -> None:
    """Raises InputError where kernels of a backend have no such axis."""
    from lbmtune.catalogue.axes import AXES

    names = [one.name for one in AXES[backend]]
    if axis not in names:
        raise unknown(f"axis of {backend} kernels", axis, names)


def varied(spec: StudySpec, described: Machine, axis: str, around: KernelConfig | None = None) -> Varied:
    """The values that a study gives to an axis, all else as in a configuration, by default the one expected to be best.

    axis: one that kernels for this machine have (`check_axis`).
    """
    from lbmtune.catalogue.axes import completed
    from lbmtune.catalogue.config import from_flat
    from lbmtune.catalogue.rules import broken
    from lbmtune.cli.devices import limits_of, predictor
    from lbmtune.cli.output import note
    from lbmtune.cli.ranking import ranking

    backend, limits = described.environment.backend, limits_of(described)
    base = around or ranking(spec, described, 1, 0, note).entries[0].config
    rest = {name: value for name, value in base.flat().items() if (axis, name) != ("storage", "compute")}
    expected = predictor(spec.case, described)
    predictions, illegal = {}, {}
    for value in _values(spec, backend, axis, base):
        config = from_flat(completed({**rest, axis: value}, limits))
        reason = broken(spec.case, config, limits)
        if reason:
            illegal[value] = reason
        else:
            predictions[value] = expected(config)
    return Varied(axis, spec.case, base, described.name, predictions, illegal)


def _values(spec: StudySpec, backend: str, axis: str, base: KernelConfig) -> list[Scalar]:
    """Numbers by size, names as the study has them; that of the configuration itself among them."""
    from lbmtune.records.study import tables

    given = [value for table in tables(spec.axes[backend]) for value in table.get(axis, ())]
    found = list(dict.fromkeys((*given, base.flat()[axis])))
    return sorted(found) if all(isinstance(value, int) for value in found) else found


def print_varied(found: Varied) -> None:
    """As a table, with a bar that is as long as the speed."""
    from lbmtune.cli import output
    from lbmtune.cli.ranking import binding  # here: it loads the model

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
