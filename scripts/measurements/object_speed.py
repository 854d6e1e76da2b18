"""The speed of exported object code beside that of the same CPU kernels in lbmtune, in one process and in turns.

    python -m scripts.measurements.object_speed                  five kinds of kernels on one thread; needs gcc or clang
    python -m scripts.measurements.object_speed --threads 16     on several, by OpenMP; needs an idle machine

Each turn takes the same number of steps by both. One thread is timed in processor seconds, so that other programs of a
shared machine disturb it little, several in seconds of the wall; which of a pair begins alternates. Prints a row for
each kind: MLUPS of the object and of lbmtune, both medians, and the median ratio of the pairs with its quartiles. It
should be 0.98 or more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.render import render
from lbmtune.measure.verification import oracle
from lbmtune.runtime import Simulation
from tests.support.kernels.headers import Exported, best_of
from tests.support.kernels.objects import exported, linked

LEAST_RATIO = 0.98


def kinds(cells: int, threads: int) -> dict[str, tuple[Case, CpuConfig]]:
    """Return the kernels that are timed, on cubes of some cells along an edge."""
    periodic, domain = box("d3q19", "bgk", (cells,) * 3, 1.3), (cells,) * 3
    rows = {"row_offset": 16, "vector_bits": vector_bits(), "threads": threads}
    return {
        "one step, fp32": (periodic, cpu.Direct(scheme="pull", **rows)),
        "one step, fp64": (periodic, cpu.Direct(scheme="pull", storage="fp64", compute="fp64", **rows)),
        "in place, fp16s": (periodic, cpu.Direct(scheme="aa", storage="fp16s", **rows)),
        "wavefront, 4 steps": (periodic, cpu.Wavefront(scheme="aa", **rows)),
        "cavity of moments, 3 steps": (
            cavity("d3q19", "regularised", domain, 1.3),
            cpu.MomentsWavefront(steps=3, tile=(64, 16, 32), **rows),
        ),
    }


@dataclass(frozen=True)
class Pairs:
    """Seconds of the same steps, by the object and by lbmtune, pair by pair; updates of each."""

    updates: int
    object_s: Sequence[float]
    lbmtune_s: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        """Return the speed of the object over that of lbmtune, pair by pair."""
        return [ours / theirs for theirs, ours in zip(self.object_s, self.lbmtune_s, strict=True)]

    def row(self, name: str) -> str:
        """Return the figures of a kind as a row."""
        low, middle, high = quantiles(self.ratios, n=4)
        speeds = (1e-6 * self.updates / median(seconds) for seconds in (self.object_s, self.lbmtune_s))
        theirs, ours = (f"{speed:7.1f}" for speed in speeds)
        return f"{name:28} {theirs} MLUPS, lbmtune {ours}, ratio {middle:.3f} ({low:.3f} to {high:.3f})"


def measured(case: Case, config: CpuConfig, pairs: int, seconds: float) -> Pairs:
    """Return the times of pairs, with the threads of the configuration. seconds: of a run, about."""
    program = render(case, config)
    simulation = Simulation(program, compile_cpu(program), open_cpu())
    with tempfile.TemporaryDirectory() as folder:
        exported(found := best_of(case, config), Path(folder))
        solver = Exported(linked(Path(folder)), found, case)
    solver("set_threads", threads := int(config.threads))
    now = time.process_time if threads == 1 else time.perf_counter
    simulation.initialise(oracle.random_state(case))
    solver.set_populations(oracle.random_state(case))
    runs: list[Callable[[int], None]] = [lambda n: solver("step", n), simulation.step]
    cycle = simulation.cycle_steps
    once = [_seconds(now, run, cycle) for run in runs for _ in range(2)]
    steps = cycle * max(1, round(seconds / min(once)))
    times: tuple[list[float], list[float]] = [], []
    for turn in range(pairs):
        for n in (0, 1) if turn % 2 else (1, 0):
            times[n].append(_seconds(now, runs[n], steps))
    solver.close()
    return Pairs(steps * case.sites, *times)


def _seconds(now: Callable[[], float], run: Callable[[int], None], steps: int) -> float:
    begin = now()
    run(steps)
    return now() - begin


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if an object is slower than it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cells", type=int, default=96, help="along each edge of the domain")
    parser.add_argument("--seconds", type=float, default=0.4, help="of a run, about")
    given = parser.parse_args(arguments)
    slow = False
    for name, (case, config) in kinds(given.cells, given.threads).items():
        found = measured(case, config, given.pairs, given.seconds)
        print(found.row(name), flush=True)
        slow |= median(found.ratios) < LEAST_RATIO
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
