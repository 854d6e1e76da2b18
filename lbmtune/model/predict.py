"""Predict what a configuration does on a machine; docs/design/gpu.md has the equations.

On a machine that is not calibrated: bytes per update over the bandwidth measured for such accesses, and the issue of
instructions: on a GPU for several steps per launch, on a CPU by the clock of its cores.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes, traffic
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.cpu import families as cpu
from lbmtune.model.gpu import families as gpu
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.memory_walks import LINE_BYTES
from lbmtune.model.roofline import Ceiling
from lbmtune.records import Prediction, Resources, Term, significant
from lbmtune.records import terms as names
from lbmtune.units import format_rate

GPU_TERMS = (
    *(names.RUNS, names.SECTORS, names.SOLID, names.IN_PLACE, names.INDEX_PREFETCH, names.LOCAL, names.THREADS),
    *(names.WAVES, names.RINGS, names.ISSUE, names.EXCHANGE, names.WALLS, names.STAGES, names.LATENCY),
    *(names.SPILL_HAZARDS, names.L2_REFETCH, names.LAUNCH, names.GRID_SYNC),
)
CPU_TERMS = (names.ARITHMETIC, names.REFILLS, names.CACHE, names.SHIFTED, names.PREFETCH, names.GROUPED)
"""The last three choose between walks."""
TERMS = (*GPU_TERMS, *CPU_TERMS, names.WALL_PASS)
"""Terms that can be left out to see what they are worth."""


class BackendModel(NamedTuple):
    """The model of a backend.

    parts: bandwidth and terms of a prediction; ceiling: measured bandwidth that fits a configuration; streams_ceiling:
    bandwidth of streams like those of a kernel; memory_bytes: bytes per update that memory moves; cells_read:
    cells that a launch reads per cell that it updates; launch_s: seconds of one more launch of some bytes, beyond them;
    line_bytes: bytes that memory moves for a single value; lines_ceiling: bandwidth of accesses by such lines.
    """

    parts: Callable[[Case, Any, Machine, Resources | None, Collection[str]], tuple[Ceiling, list[Term]]]
    ceiling: Callable[[Any, Machine], Ceiling]
    streams_ceiling: Callable[[Case, Any, Machine], Ceiling]
    memory_bytes: Callable[[Case, Any, Machine, Resources | None], float]
    cells_read: Callable[[Case, Any], float]
    launch_s: Callable[[Case, Any, Machine, float], float]
    line_bytes: int
    lines_ceiling: Callable[[Any, Machine], Ceiling]


MODELS: Mapping[str, BackendModel] = {
    "cuda": BackendModel(
        parts=gpu.parts,
        ceiling=gpu.ceiling,
        streams_ceiling=gpu.streams_ceiling,
        memory_bytes=gpu.compiled_memory_bytes,
        cells_read=gpu.cells_read,
        launch_s=gpu.launch_s,
        line_bytes=SECTOR_BYTES,
        lines_ceiling=gpu.lines_ceiling,
    ),
    "cpu": BackendModel(
        parts=cpu.parts,
        ceiling=cpu.ceiling,
        streams_ceiling=lambda _case, config, machine: cpu.ceiling(config, machine),
        memory_bytes=lambda case, config, _machine, _resources: traffic(case, config).total,
        cells_read=lambda _case, _config: 1.0,  # halos do not count
        launch_s=lambda _case, _config, _machine, _moved: 0.0,
        line_bytes=LINE_BYTES,
        lines_ceiling=cpu.lines_ceiling,
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
    plain = replace(case, walls="half-way") if case.interpolates else case  # made anew, it would be checked anew
    rate, terms = MODELS[config.backend].parts(plain, config, machine, resources, without)
    if case.interpolates and names.WALL_PASS not in without:
        terms = [*terms, _wall_pass(case, config, machine)]
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


def _wall_pass(case: Case, config: KernelConfig, machine: Machine) -> Term:
    """Return the time of the pass of interpolated walls: its lines, and a launch."""
    from lbmtune.model.wall_pass import wall_pass_bytes  # here: few cases have it

    model = MODELS[config.backend]
    rate = model.lines_ceiling(config, machine)
    moved = wall_pass_bytes(case, config, model.line_bytes)
    more_s = model.launch_s(case, config, machine, moved * case.fluid_sites) / case.fluid_sites
    sentence = f"{moved:.4g} bytes of whole lines per update at {format_rate(rate.bytes_per_s)}"
    return Term(names.WALL_PASS, moved / rate.bytes_per_s + more_s, sentence, rate.source)


def ceiling(config: KernelConfig, machine: Machine) -> Ceiling:
    """Return the measured bandwidth that fits the accesses of a configuration."""
    return MODELS[config.backend].ceiling(config, machine)


def cells_read(case: Case, config: KernelConfig) -> float:
    """Return the cells that a launch reads per cell that it updates: 1 without halos."""
    return MODELS[config.backend].cells_read(case, config)
