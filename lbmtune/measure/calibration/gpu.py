"""What bounds kernels on a GPU besides the bandwidth of aligned streams, from micro-benchmarks without a lattice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Program
from lbmtune.measure.calibration import gpu_latency as waits
from lbmtune.measure.calibration import gpu_memory as memory
from lbmtune.measure.calibration.bench import Bench, Kernel, Part
from lbmtune.measure.processes.worker import Progress
from lbmtune.model.machine.description import Calibration

Parts = Callable[[Limits], Iterator[Part]]
_PARTS: Mapping[str, tuple[Parts, ...]] = {
    "copies of streams that lie in runs": (memory.runs,),
    "copies by fewer threads": (memory.fewer_threads,),
    "displaced copies": (memory.displaced,),
    "displaced copies by vectors, copies that spill": (memory.shuffled, memory.spilled),
    "arrays of structures": (memory.structures, memory.planes, memory.parts),
    "copies by lists": (memory.listed,),
    "issue of instructions, latencies, meetings of blocks": (
        waits.instructions,
        waits.stages,
        waits.overtaken,
        waits.latencies,
        waits.meeting,
    ),
    "local memory, small copies, tiles that are read again, sectors with holes": (
        memory.local,
        waits.launches,
        memory.again,
        memory.holes,
        memory.pieces,
    ),
}
"""In the order in which they are measured, by what is said then."""


def texts(limits: Limits) -> Iterator[Program]:
    """What is compiled for a device with these limits, in the order in which `calibrate` asks for it."""
    return (part.program for _, parts in _parts(limits) for part in parts)


def calibrate(device: Device, compiler: Compiler, progress: Progress) -> Calibration:
    """Runs all of them: less than a minute. Raises what the device raises.

    compiler: asked for most texts many times, it should make each of them once.
    """
    bench = Bench(device)
    tables: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for what, parts in _parts(device.limits):
        progress(what)
        for part in parts:
            program = part.program
            launch = next(one for one in program.period[0] if one.entry == part.entry)
            kernel = Kernel(device.load(program, compiler(program)), launch)
            tables[part.table].update(part.figures(bench, kernel))
    # what has one figure has no names
    found: dict[str, Any] = {table: figures.get("", figures) for table, figures in tables.items()}
    return Calibration(l1_bytes=memory.L1_BYTES, **found)


def _parts(limits: Limits) -> Iterator[tuple[str, Iterator[Part]]]:
    for what, makers in _PARTS.items():
        yield what, chain.from_iterable(make(limits) for make in makers)
