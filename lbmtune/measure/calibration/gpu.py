"""Calibrate the GPU model: what bounds kernels besides the bandwidth of aligned streams."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.measure.calibration import gpu_caches as caches
from lbmtune.measure.calibration import gpu_latency as latency
from lbmtune.measure.calibration import gpu_memory as memory
from lbmtune.measure.calibration import gpu_structures as structures
from lbmtune.measure.calibration.gpu_bench import GpuBench, Part
from lbmtune.measure.calibration.microbench import loaded
from lbmtune.measure.processes.worker import Progress
from lbmtune.model.machine.description import Calibration

Parts = Callable[[Limits], Iterator[Part]]
_PARTS: Mapping[str, tuple[Parts, ...]] = {
    "copies of streams that lie in runs": (memory.runs,),
    "copies by fewer threads": (memory.fewer_threads,),
    "displaced copies": (memory.displaced,),
    "displaced copies by vectors, copies that spill": (memory.shuffled, caches.spilled),
    "arrays of structures": (structures.structures, structures.planes, structures.parts),
    "copies by an index list": (memory.listed,),
    "instruction issue, latencies, grid-wide synchronisation": (
        latency.instructions,
        latency.stages,
        latency.spill_hazards,
        latency.latencies,
        latency.grid_sync,
    ),
    "local memory, small copies, tiles that are read again, partial sectors": (
        caches.local,
        latency.launches,
        caches.l2_refetch,
        caches.holes,
        caches.pieces,
    ),
}
"""The benchmarks in order, by the progress that is reported."""


def texts(limits: Limits) -> Iterator[Program]:
    """Yield the programs that `calibrate` compiles for a device with these limits, in order."""
    return (part.program for _, parts in _parts(limits) for part in parts)


def calibrate(device: Device, compiler: Compiler, progress: Progress) -> Calibration:
    """Run all micro-benchmarks, in less than a minute. Raises what the device raises.

    compiler: called repeatedly for most texts, so it should compile each once.
    """
    bench = GpuBench(device)
    tables: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for what, parts in _parts(device.limits):
        progress(what)
        for part in parts:
            kernel = loaded(device, compiler, part.program, part.entry)
            tables[part.table].update(part.figures(bench, kernel))
    # a table of one figure has no names
    found: dict[str, Any] = {table: figures.get("", figures) for table, figures in tables.items()}
    return Calibration(l1_bytes=caches.L1_BYTES, **found)


def _parts(limits: Limits) -> Iterator[tuple[str, Iterator[Part]]]:
    for what, makers in _PARTS.items():
        yield what, chain.from_iterable(make(limits) for make in makers)
