"""Predict what a configuration does on a machine; docs/design/gpu.md has the equations.

On a machine that is not calibrated: bytes per update over the bandwidth measured for such accesses, and the issue of
instructions: on a GPU for several steps per launch, on a CPU by the clock of its cores.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes, traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.cpu import families as cpu
from lbmtune.model.gpu import families as gpu
from lbmtune.model.machine.description import Machine
from lbmtune.model.roofline import Ceiling
from lbmtune.records import Prediction, Resources, Term, significant
from lbmtune.records import terms as names

GPU_TERMS = (
    *(names.RUNS, names.SECTORS, names.SOLID, names.IN_PLACE, names.INDEX_PREFETCH, names.LOCAL, names.THREADS),
    *(names.WAVES, names.RINGS, names.ISSUE, names.EXCHANGE, names.WALLS, names.STAGES, names.LATENCY),
    *(names.SPILL_HAZARDS, names.L2_REFETCH, names.LAUNCH, names.GRID_SYNC),
)
CPU_TERMS = (names.ARITHMETIC, names.REFILLS, names.CACHE, names.SHIFTED, names.PREFETCH, names.GROUPED)
"""The last three choose between walks."""
TERMS = (*GPU_TERMS, *CPU_TERMS)
"""Terms that can be left out to see what they are worth."""


class BackendModel(NamedTuple):
    """The model of a backend.

    parts: bandwidth and terms of a prediction; ceiling: measured bandwidth that fits a configuration; streams_ceiling:
    bandwidth of streams like those of a kernel; memory_bytes: bytes per update that memory moves; cells_read:
    cells that a launch reads per cell that it updates.
    """

    parts: Callable[[Case, Any, Machine, Resources | None, Collection[str]], tuple[Ceiling, list[Term]]]
    ceiling: Callable[[Any, Machine], Ceiling]
    streams_ceiling: Callable[[Case, Any, Machine], Ceiling]
    memory_bytes: Callable[[Case, Any, Machine, Resources | None], float]
    cells_read: Callable[[Case, Any], float]


MODELS: Mapping[str, BackendModel] = {
    "cuda": BackendModel(gpu.parts, gpu.ceiling, gpu.streams_ceiling, gpu.compiled_memory_bytes, gpu.cells_read),
    "cpu": BackendModel(
        parts=cpu.parts,
        ceiling=cpu.ceiling,
        streams_ceiling=lambda _case, config, machine: cpu.ceiling(config, machine),
        memory_bytes=lambda case, config, _machine, _resources: traffic(case, config).total,
        cells_read=lambda _case, _config: 1.0,  # halos do not count
    ),
}


def predict(
    case: Case,
    config: KernelConfig,
    machine: Machine,
    resources: Resources | None = None,
    without: Collection[str] = (),
) -> Prediction:
    """Predict the speed of a kernel on a machine, from its description alone.

    resources: of the compiled kernel; estimated if None. without: `TERMS` to leave out.
    Sources: Williams et al. 2009 (roofline); Wellein et al. 2006 (bytes per update); those of `model.gpu.direct`.
    """
    rate, terms = MODELS[config.backend].parts(case, config, machine, resources, without)
    largest_first = tuple(sorted((one for one in terms if one.seconds), key=lambda one: -one.seconds))
    return Prediction(
        mlups=1e-6 / sum(one.seconds for one in terms),
        bytes_per_update=bytes_per_update(case, config),
        bandwidth_bytes_per_s=rate.bytes_per_s,
        footprint_bytes=footprint_bytes(case, config),
        limit="; ".join(
            f"{one.name}: {one.sentence}, {one.seconds * 1e12:.3g} ps" for one in significant(largest_first)
        ),
        ceiling_source=rate.source,
        terms=largest_first,
    )


def ceiling(config: KernelConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth that fits the accesses of a configuration."""
    return MODELS[config.backend].ceiling(config, machine)


def cells_read(case: Case, config: KernelConfig) -> float:
    """Return the cells that a launch reads per cell that it updates: 1 without halos."""
    return MODELS[config.backend].cells_read(case, config)
