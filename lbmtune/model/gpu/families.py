"""The model of GPU kernels: what is asked of each family (`MODEL` of its module), and what all have in common."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.footprint import bytes_per_update, traffic
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms import fixed_costs, spills
from lbmtune.model.gpu.terms.copies import bandwidth, plain_bandwidth
from lbmtune.model.gpu.terms.l2_refetch import box_memory_bytes
from lbmtune.model.machine.description import ACCESS_BYTES, Machine
from lbmtune.model.roofline import CALIBRATED, DATASHEET, Ceiling, copy_ceiling, memory_term
from lbmtune.records import Resources, Term
from lbmtune.records.terms import RUNS


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


def _family(config: CudaConfig) -> Family:
    found: Family = module_of("lbmtune.model.gpu", config).MODEL
    return found


def estimated(case: Case, config: CudaConfig) -> Resources:
    """Estimate the resources of a kernel that was not compiled."""
    return _family(config).estimated(case, config)


def inputs_of(case: Case, config: CudaConfig, machine: Machine, resources: Resources | None = None) -> Inputs:
    """Return the inputs of a prediction, with estimated resources unless given. The machine has to be calibrated."""
    assert machine.calibration is not None
    family = _family(config)
    used = resources or family.estimated(case, config)
    return family.inputs(case, config, machine, machine.calibration, used)


def cells_read(case: Case, config: CudaConfig) -> float:
    """Return the cells that a launch reads per cell that it updates: 1 without halos."""
    return _family(config).cells_read(case, config)


def launch_s(case: Case, config: CudaConfig, machine: Machine, moved: float) -> float:
    """Return what one more launch of some bytes takes beyond them; 0 on a machine that is not calibrated."""
    return fixed_costs.launch_s(inputs_of(case, config, machine, Resources()), moved) if machine.calibration else 0.0


def ceiling(config: CudaConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth that fits the accesses of a configuration."""
    return copy_ceiling(machine, str(min(_family(config).inputs.lane_bytes(config), ACCESS_BYTES)))


def lines_ceiling(_config: CudaConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth of copies by accesses that are closest to a sector."""
    return copy_ceiling(machine, str(SECTOR_BYTES))


def streams_ceiling(case: Case, config: CudaConfig, machine: Machine) -> Ceiling:
    """Return the bandwidth of streams like those of the kernel, without displacements."""
    if machine.calibration is None:
        return ceiling(config, machine)
    return Ceiling(plain_bandwidth(inputs_of(case, config, machine, Resources())), CALIBRATED)


def parts(
    case: Case, config: CudaConfig, machine: Machine, resources: Resources | None, without: Collection[str]
) -> tuple[Ceiling, list[Term]]:
    """Return the bandwidth and the terms of a prediction."""
    family, found = _family(config), ceiling(config, machine)
    memory = memory_term(bytes_per_update(case, config), found.bytes_per_s, found.source)
    if machine.calibration is None:
        return found, family.uncalibrated(case, config, machine, memory)
    inputs = inputs_of(case, config, machine, resources)
    if family.streams:
        known = CALIBRATED if machine.measured else DATASHEET
        source = f"{known}; curves of {machine.calibrated_as} scaled to it" if machine.calibrated_as else CALIBRATED
        found = Ceiling(bandwidth(inputs, by_runs=RUNS not in without), source)
    return found, family.terms(inputs, without) or [memory]


def memory_bytes(case: Case, config: CudaConfig, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update that memory moves. at_once: concurrent blocks; 0: one per multiprocessor."""
    return _family(config).memory_bytes(case, config, machine, at_once)


def compiled_memory_bytes(case: Case, config: CudaConfig, machine: Machine, resources: Resources | None) -> float:
    """Return the bytes per update that memory moves, by the concurrent blocks of a compiled kernel if known."""
    if machine.calibration is None or resources is None:
        return memory_bytes(case, config, machine)
    at_once = inputs_of(case, config, machine, resources).blocks * machine.multiprocessors
    return memory_bytes(case, config, machine, at_once)
