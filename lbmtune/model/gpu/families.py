"""The families of GPU kernels: what the model knows of each of them, by its name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.footprint import bytes_per_update, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu import column, direct, face_exchange, persistent, sparse
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.temporal_blocking import terms as temporal_blocking
from lbmtune.model.gpu.temporal_blocking.inputs import TemporalInputs
from lbmtune.model.gpu.terms import spills
from lbmtune.model.gpu.terms.copies import bandwidth, plain_bandwidth
from lbmtune.model.gpu.terms.l2_refetch import box_memory_bytes
from lbmtune.model.machine.description import ACCESS_BYTES, Machine
from lbmtune.model.roofline import CALIBRATED, DATASHEET, Ceiling, copy_ceiling, memory_term
from lbmtune.records import Resources, Term
from lbmtune.records.terms import RUNS


def _traffic(case: Case, config: CudaConfig, _machine: Machine, _at_once: int = 0) -> float:
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


FAMILIES: Mapping[str, Family] = {
    "direct": Family(Inputs, direct.terms),
    "column": Family(column.ColumnInputs, direct.terms, column.estimated),
    "sparse": Family(sparse.SparseInputs, sparse.terms, memory_bytes=_traffic),
    "temporal-blocking": Family(
        TemporalInputs,
        temporal_blocking.terms,
        temporal_blocking.estimated,
        temporal_blocking.memory_bytes,
        temporal_blocking.uncalibrated_terms,
        cells_read=temporal_blocking.cells_read,
    ),
    "persistent": Family(persistent.PersistentInputs, persistent.terms, persistent.estimated, _traffic, streams=False),
    "face-exchange": Family(face_exchange.FaceExchangeInputs, face_exchange.terms, face_exchange.estimated),
}


def estimated(case: Case, config: CudaConfig) -> Resources:
    """Estimate the resources of a kernel that was not compiled."""
    return FAMILIES[config.family].estimated(case, config)


def inputs_of(case: Case, config: CudaConfig, machine: Machine, resources: Resources | None = None) -> Inputs:
    """Return the inputs of a prediction, with estimated resources unless given. The machine has to be calibrated."""
    assert machine.calibration is not None
    family = FAMILIES[config.family]
    used = resources or family.estimated(case, config)
    return family.inputs(case, config, machine, machine.calibration, used)


def cells_read(case: Case, config: CudaConfig) -> float:
    """Return the cells that a launch reads per cell that it updates: 1 without halos."""
    return FAMILIES[config.family].cells_read(case, config)


def ceiling(config: CudaConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth that fits the accesses of a configuration."""
    return copy_ceiling(machine, str(min(FAMILIES[config.family].inputs.lane_bytes(config), ACCESS_BYTES)))


def streams_ceiling(case: Case, config: CudaConfig, machine: Machine) -> Ceiling:
    """Return the bandwidth of streams like those of the kernel, without displacements."""
    if machine.calibration is None:
        return ceiling(config, machine)
    return Ceiling(plain_bandwidth(inputs_of(case, config, machine, Resources())), CALIBRATED)


def parts(
    case: Case, config: CudaConfig, machine: Machine, resources: Resources | None, without: Collection[str]
) -> tuple[Ceiling, list[Term]]:
    """Return the bandwidth and the terms of a prediction."""
    family, found = FAMILIES[config.family], ceiling(config, machine)
    memory = memory_term(bytes_per_update(case, config), found.bytes_per_s, found.source)
    if machine.calibration is None:
        return found, family.uncalibrated(case, config, machine, memory)
    inputs = inputs_of(case, config, machine, resources)
    if family.streams:
        source = f"{DATASHEET}; curves of {machine.calibrated_as} scaled to it" if machine.calibrated_as else CALIBRATED
        found = Ceiling(bandwidth(inputs, by_runs=RUNS not in without), source)
    return found, family.terms(inputs, without) or [memory]


def memory_bytes(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update that memory moves. at_once: concurrent blocks; 0: one per multiprocessor."""
    return FAMILIES[config.family].memory_bytes(case, config, machine, at_once)


def compiled_memory_bytes(case: Case, config: CudaConfig, machine: Machine, resources: Resources | None) -> float:
    """Return the bytes per update that memory moves, by the concurrent blocks of a compiled kernel if known."""
    if machine.calibration is None or resources is None:
        return memory_bytes(case, config, machine)
    at_once = inputs_of(case, config, machine, resources).blocks * machine.multiprocessors
    return memory_bytes(case, config, machine, at_once)
