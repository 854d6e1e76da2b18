"""What the model knows of a family of GPU kernels: `MODEL` of its module."""

from __future__ import annotations

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


def _memory_alone(_case: Case, _config: CudaConfig, _machine: Machine, memory: Term) -> list[Term]:
    """Return the term of memory."""
    return [memory]


def _one_cell(_case: Case, _config: CudaConfig) -> float:
    """Return 1: no halo is computed."""
    return 1.0


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
    uncalibrated: Callable[[Case, Any, Machine, Term], list[Term]] = _memory_alone
    streams: bool = True
    cells_read: Callable[[Case, Any], float] = _one_cell
