"""Calibrate the GPU model: what bounds kernels besides the bandwidth of aligned streams."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
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


_ALL = frozenset(one.name for one in fields(Calibration))
_RANKING = frozenset(
    (
        *("runs_bytes_per_s", "threads_bytes_per_s", "displaced_bytes_per_s", "local_bytes_per_s"),
        *("instructions_per_s", "stages_s"),
    )
)
"""Tables in which devices of a kind differ by more than their bandwidths, and that most kernels are ranked by."""


def texts(limits: Limits, *, ranking: bool = False) -> Iterator[Program]:
    """Yield the programs that a calibration compiles, in order. ranking: those of `calibrate_quickly`."""
    return (part.program for _, parts in _parts(limits, _RANKING if ranking else _ALL) for part in parts)


def calibrate(device: Device, compiler: Compiler, progress: Progress) -> Calibration:
    """Run all micro-benchmarks, in less than a minute. Raises what the device raises.

    compiler: called repeatedly for most texts, so it should compile each once.
    """
    return Calibration(l1_bytes=caches.L1_BYTES, **_tables(GpuBench(device), compiler, progress, _ALL))


def calibrate_quickly(device: Device, compiler: Compiler, progress: Progress, borrowed: Calibration) -> Calibration:
    """Run what ranks kernels, in seconds and by short samples; what else there is remains as borrowed."""
    return replace(borrowed, **_tables(GpuBench(device, limit_s=0.0), compiler, progress, _RANKING))


def _tables(bench: GpuBench, compiler: Compiler, progress: Progress, wanted: Collection[str]) -> dict[str, Any]:
    tables: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for what, parts in _parts(bench.device.limits, wanted):
        progress(what)
        for part in parts:
            kernel = loaded(bench.device, compiler, part.program, part.entry)
            tables[part.table].update(part.figures(bench, kernel))
    # a table of one figure has no names
    return {table: figures.get("", figures) for table, figures in tables.items()}


def _parts(limits: Limits, wanted: Collection[str]) -> Iterator[tuple[str, list[Part]]]:
    for what, makers in _PARTS.items():
        parts = [part for part in chain.from_iterable(make(limits) for make in makers) if part.table in wanted]
        if parts:
            yield what, parts
