"""Measure how many passes of shared memory a word takes that asynchronous copies fetch.

    python -m scripts.measurements.plane_fetch OUT.json             on GPU 0, in less than half a minute

Threads fetch planes of a ring that lies in the L2 cache, and read each word several times from shared memory: so often
that passes bind, each of 32 words of a multiprocessor. Planes that are not fetched show what a pass takes. What others
take beside those, in passes per word, is that of their fetch: loads alone, loads and stores to shared memory, and
asynchronous copies through L1 or past it. The model counts such passes (`exchanges` in
`lbmtune.model.gpu.temporal_blocking.instruction_issue`). All that bring planes to shared memory have to read the same
words there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import cuda
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.streams import CASE
from lbmtune.cores import usable_cores
from lbmtune.measure.calibration.microbench import Kernel, check_moved, loaded
from lbmtune.measure.timing.state import all_true

FETCHES = ("none", "registers", "stored", "cp_async", "past_l1")
"""Ways in which planes come, in the order of their numbers in the text."""
WORDS, WIDTHS = (4, 8, 12), (4, 16)
"""Words of a thread in a plane, and bytes of an access."""
PASSES = (4, 8, 12, 16, 24)
"""Reads of each word."""
BINDING = 8
"""Fewest reads beside which the bandwidth of L2 does not bind."""
THREADS, BLOCKS, RING_BYTES = 256, 6, 8 << 20
"""Threads of a block, blocks of a multiprocessor, and bytes of the ring of planes."""
PASSES_OF_LAUNCH, SAMPLES = 24_000, 5
"""Reads of a word in a launch, and launches of which the median counts."""
ENTRY = "stream_planes"


class Shape(NamedTuple):
    """A kernel: how planes come, words of a thread in each, and bytes of an access."""

    fetch: str
    words: int
    width: int


class Row(NamedTuple):
    """A kernel with the seconds of a plane, by the reads of each of its words."""

    shape: Shape
    plane_s: Mapping[int, float]


def shapes() -> Iterator[Shape]:
    """Yield all kernels; copies past L1 have 16 bytes."""
    for words, width, fetch in product(WORDS, WIDTHS, FETCHES):
        if fetch != "past_l1" or width == max(WIDTHS):
            yield Shape(fetch, words, width)


def program(shape: Shape) -> Program:
    """Return the text of a kernel."""
    block = (THREADS, 1, 1)
    macros = {
        "FETCH": FETCHES.index(shape.fetch),
        "ACCESS": shape.width,
        "COUNT": 4 * shape.words // shape.width,
        "THREADS": THREADS,
        "BLOCKS": BLOCKS,
    }
    options = ("--std=c++17", *(f"-D{name}={value}" for name, value in macros.items()))
    launch = Launch(ENTRY, ("source", "sums", "ring", "planes", "passes"), block=block, covers=block)
    text = Path(__file__).with_name("kernel.cu").read_text(encoding="utf-8")
    return Program("cuda", CASE, cuda.Direct(block=block), text, options, ((launch,),))


def fetch_passes(rows: Sequence[Row]) -> dict[Shape, dict[int, float]]:
    """Return the passes per word that each fetch takes, by the reads of each word beside it.

    A pass takes what one more read takes if planes are not fetched, by the longest two of these.
    """
    still = {(row.shape.words, row.shape.width): row.plane_s for row in rows if row.shape.fetch == "none"}
    found = {}
    for row in rows:
        without = still[row.shape.words, row.shape.width]
        few, many = sorted(without)[-2:]
        pass_s = (without[many] - without[few]) / (many - few)
        if row.shape.fetch != "none":
            found[row.shape] = {reads: (row.plane_s[reads] - without[reads]) / pass_s for reads in sorted(without)}
    return found


def measure(device: Device, compiler: Compiler) -> list[Row]:
    """Return the rows of all kernels. Raises RuntimeError if one of them reads other words than it should."""
    programs = {shape: program(shape) for shape in shapes()}
    with ThreadPoolExecutor(usable_cores()) as pool:
        binaries = dict(zip(programs, pool.map(compiler, programs.values()), strict=True))
    blocks = BLOCKS * device.limits.multiprocessors
    source, sums = device.empty(RING_BYTES // 4, "uint32"), device.empty(blocks * THREADS, "uint32")
    source[...] = device.xp.arange(source.size, dtype="uint32")
    read: dict[tuple[int, int], Any] = {}
    rows = []
    for shape, text in programs.items():
        kernel = loaded(device, lambda _, made=binaries[shape]: made, text, ENTRY)
        seconds = {reads: _plane_s(device, _launch(kernel, blocks, source, sums, shape, reads)) for reads in PASSES}
        if shape.fetch in FETCHES[2:]:
            first = read.setdefault((shape.words, shape.width), sums.copy())
            check_moved(all_true(first == sums))
        rows.append(Row(shape, {reads: took / _planes(reads) for reads, took in seconds.items()}))
    return rows


def _launch(kernel: Kernel, blocks: int, source: Any, sums: Any, shape: Shape, reads: int) -> Callable[[], None]:
    ring = source.size // (shape.words * THREADS)
    return kernel.by(blocks, source, sums, *map(np.int32, (ring, _planes(reads), reads)))


def _planes(reads: int) -> int:
    return PASSES_OF_LAUNCH // reads


def _plane_s(device: Device, run: Callable[[], None]) -> float:
    """Return the median seconds of a launch, after one that does not count."""
    run()
    return median(device.time_s(run) for _ in range(SAMPLES))


def table(rows: Sequence[Row]) -> list[str]:
    """Return the passes per word, a line for each kernel."""
    lines = ["fetch       words  bytes of an access  " + "".join(f"{reads:8d} reads" for reads in PASSES)]
    for shape, found in fetch_passes(rows).items():
        figures = "".join(f"{found[reads]:14.2f}" for reads in PASSES)
        lines.append(f"{shape.fetch:10s} {shape.words:6d} {shape.width:19d}  {figures}")
    return lines


def summary(rows: Sequence[Row]) -> dict[str, float]:
    """Return the median passes per word of each fetch, where passes bind."""
    found = fetch_passes(rows)
    return {
        f"{fetch}, {width} bytes": median(
            passes
            for shape, each in found.items()
            if (shape.fetch, shape.width) == (fetch, width)
            for reads, passes in each.items()
            if reads >= BINDING
        )
        for fetch, width in dict.fromkeys((shape.fetch, shape.width) for shape in found)
    }


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="file of the results")
    parser.add_argument("--device", default="0", help="GPU [0]")
    given = parser.parse_args(words)
    device = open_device(given.device)
    rows = measure(device, compiler_for(device.environment))
    print("\n".join(table(rows)))
    for name, passes in summary(rows).items():
        print(f"{name}: {passes:.2f} passes per word")
    document = {
        "what": "seconds of a plane, by how planes come and by the reads of each of its words",
        "device": device.environment.device,
        "threads": BLOCKS * THREADS,
        "passes": summary(rows),
        "rows": [{**row.shape._asdict(), "plane_s": {str(n): took for n, took in row.plane_s.items()}} for row in rows],
    }
    given.out.write_text(json.dumps(document, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
