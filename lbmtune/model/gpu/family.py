"""What the model knows of a family of GPU kernels: `MODEL` of its module."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms import spills
from lbmtune.model.gpu.terms.l2_refetch import box_memory_bytes
from lbmtune.model.machine.description import Machine
from lbmtune.records import Resources, Term


def traffic_alone(case: Case, config: CudaConfig, _machine: Machine, _at_once: int = 0) -> float:
    """Return the traffic, of which nothing is moved again."""
    return traffic(case, config).total


@dataclass(frozen=True)
class Family:
    """The model of a family.

    inputs: quantities that shared terms need; terms: of a calibrated machine; estimated: resources of a kernel that was
    not compiled; memory_bytes: bytes per update that memory moves; uncalibrated: terms with that of memory; streams:
    whether memory limits it as it limits copies; cells_read: see `model.predict.cells_read`.
    """

    inputs: type[Inputs]
    terms: Callable[[Any, Collection[str]], list[Term]]
    estimated: Callable[[Case, Any], Resources] = spills.estimated
    memory_bytes: Callable[[Case, Any, Machine, int], float] = box_memory_bytes
    uncalibrated: Callable[[Case, Any, Machine, Term], list[Term]] = lambda _case, _config, _machine, memory: [memory]
    streams: bool = True
    cells_read: Callable[[Case, Any], float] = lambda _case, _config: 1.0  # no halo
