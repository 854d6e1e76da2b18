"""All legal configurations of a study in the order that the model expects, without a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.model.machine import Machine
    from lbmtune.records import Prediction
    from lbmtune.records.study import StudySpec


@dataclass(frozen=True)
class Ranking:
    """Configurations with their predictions, the fastest first; where two are expected to be equal, by their keys."""

    study: str
    machine: str
    entries: tuple[tuple[KernelConfig, Prediction], ...]

    def facts(self, top: int) -> dict[str, Any]:
        """The first ones as plain data."""
        return {
            "study": self.study,
            "machine": self.machine,
            "legal_configurations": len(self.entries),
            "first": [
                {"config": config.flat(), "key": config.key, "prediction": prediction}
                for config, prediction in self.entries[:top]
            ],
        }


def ranking(spec: StudySpec, described: Machine) -> Ranking:
    """Predicts the whole legal space of a study. Raises InputError where no configuration is legal."""
    from lbmtune.cli.devices import limits_of, predictor
    from lbmtune.search.space import legal_set

    backend = described.environment.backend
    space = legal_set(spec.case, backend, spec.axes[backend], limits_of(described))
    expected = predictor(spec.case, described)
    found = [(config, expected(config)) for config in space.configs]
    found.sort(key=lambda entry: (-entry[1].mlups, entry[0].key))
    return Ranking(spec.name, described.name, tuple(found))


def print_ranking(ranked: Ranking, top: int) -> None:
    """As a table."""
    from lbmtune.cli import output

    rows = (
        (f"{prediction.mlups:,.0f}", prediction.limit, config.key, config.brief)
        for config, prediction in ranked.entries[:top]
    )
    title = f"{ranked.study} on {ranked.machine}: {len(ranked.entries)} legal configurations"
    output.stdout().print(output.table(title, ("MLUPS>", "limit", "key", "configuration"), rows))
