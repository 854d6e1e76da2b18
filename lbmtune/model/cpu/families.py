"""The model of CPU kernels: what is asked of each family (`model.cpu.inputs.Family`), and what all have in common."""

from collections.abc import Collection
from dataclasses import replace

from lbmtune.catalogue.config import ANY_NODE, CpuConfig
from lbmtune.catalogue.families import module_of
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.cpu.arithmetic import ESTIMATED, arithmetic, estimated_calibration
from lbmtune.model.cpu.inputs import CpuInputs, Family, of_a_node
from lbmtune.model.machine.description import CpuCalibration, Machine
from lbmtune.model.machine.memory_walks import LINE_BYTES
from lbmtune.model.roofline import CALIBRATED, Ceiling, copy_ceiling, memory_term
from lbmtune.records import Resources, Term


def _family(config: CpuConfig) -> Family:
    found: Family = module_of("lbmtune.model.cpu", config).MODEL
    return found


def inputs_of(case: Case, config: CpuConfig, machine: Machine, calibration: CpuCalibration) -> CpuInputs:
    """Return the inputs of a prediction."""
    return _family(config).inputs(case, config, machine, calibration)


def ceiling(config: CpuConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth that fits the accesses of a configuration, by its threads."""
    return _by_threads(_ceiling_of_all(config, machine), config, machine)


def lines_ceiling(config: CpuConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth of copies by whole lines, by the threads of a configuration."""
    return _by_threads(copy_ceiling(machine, str(LINE_BYTES)), config, machine)


def _by_threads(full: Ceiling, config: CpuConfig, machine: Machine) -> Ceiling:
    if config.numa != ANY_NODE:
        share = of_a_node(config, machine)
        return Ceiling(full.bytes_per_s * share, f"{full.source}, {share:.0%} of it for one NUMA node")
    alone = machine.thread_bytes_per_s
    if alone is None or config.threads * alone >= full.bytes_per_s:
        return full
    return Ceiling(config.threads * alone, f"{config.threads} x update in place by one thread")


def _ceiling_of_all(config: CpuConfig, machine: Machine) -> Ceiling:
    if config.propagation.in_place:
        return Ceiling(machine.in_place_bytes_per_s, "update in place")
    if config.streaming_stores:
        return copy_ceiling(machine, "64 streaming")
    return copy_ceiling(machine, str(config.vector_bits // 8 or config.stored.bytes))


def parts(
    case: Case, config: CpuConfig, machine: Machine, _resources: Resources | None, without: Collection[str]
) -> tuple[Ceiling, list[Term]]:
    """Return the bandwidth and the terms of a prediction."""
    if machine.cpu is None:
        found = ceiling(config, machine)
        memory = memory_term(bytes_per_update(case, config), found.bytes_per_s, found.source)
        rates = estimated_calibration(machine)
        if rates is None:
            return found, [memory]
        computed = (_family(config).arithmetic or arithmetic)(inputs_of(case, config, machine, rates))
        return found, [memory, replace(computed, source=ESTIMATED)]
    of_all = terms(inputs_of(case, config, machine, machine.cpu), without)
    return Ceiling(bytes_per_update(case, config) / of_all[0].seconds, CALIBRATED), of_all


def terms(inputs: CpuInputs, without: Collection[str] = ()) -> list[Term]:
    """Return the terms of a calibrated machine."""
    return _family(inputs.config).terms(inputs, without)
