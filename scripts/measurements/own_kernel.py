"""Search a user's kernel as a study does, and compare the best of few evaluations with that of all.

    python -m scripts.measurements.own_kernel examples/own-kernel/d2q9.c OUT --device cpu
    python -m scripts.measurements.own_kernel examples/own-kernel/d2q9_gpu.cu OUT --device 0

All legal configurations are measured once, by a study that leaves none out (in OUT, resumed if it is there). Then the
strategy of a study is played on what was measured, with other seeds and orders. --processor-time: kernels of one thread
on a machine that others use are timed by the processor time of a few launches instead, without finals.
"""

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from lbmtune import api
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.render import render
from lbmtune.files.kernelstudy import kernel_study
from lbmtune.measure.timing.state import excite
from lbmtune.measure.verification import own_kernel as own_kernel  # which registers how these are filled
from lbmtune.records.spec import Budget, StudySpec
from lbmtune.records.whole_files import HEADER
from lbmtune.runtime.own_kernel import OwnSimulation
from lbmtune.search.interfaces import Seen
from lbmtune.search.observations import seen_of
from lbmtune.search.spaces.space import legal_set
from lbmtune.search.strategies.auto import Auto
from lbmtune.units import mlups
from scripts.contest.play import played
from scripts.contest.sets import World

_LEAST_S, _REPEATS = 0.1, 3


def main() -> None:
    """Measure, play and print the share of the best that few evaluations find."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kernel", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default=None)
    parser.add_argument("--set", action="append", default=[], dest="sets")
    parser.add_argument("--evaluations", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--processor-time", action="store_true")
    options = parser.parse_args()
    spec = replace(kernel_study(options.kernel, [*options.sets, "strategy=exhaustive"]), budget=Budget())
    if options.processor_time:
        found = by_processor_time(spec, options.out)
    else:
        found = by_study(spec, options.device, options.out)
    shares = [best_share(found, seed, options.evaluations) for seed in range(options.seeds)]
    reached = sum(share >= 0.97 for share in shares)
    slowest, fastest = np.nanmin(found.truth), np.nanmax(found.truth)
    print(f"{len(found.configs)} legal configurations, {slowest:.4g} to {fastest:.4g} MLUPS")
    print(
        f"best of {options.evaluations} evaluations over that of all: median {median(shares):.3f}, "
        f"least {min(shares):.3f}, 0.97 reached by {reached} of {len(shares)} seeds"
    )


def best_share(world: World, seed: int, evaluations: int) -> float:
    """Return the share of the best that a search with a seed finds."""
    run = played(world, Auto, seed, evaluations)
    return float(max(world.share[list(run.order)]))


def by_study(spec: StudySpec, device: str | None, folder: Path) -> World:
    """Return what a study of all configurations measured. Its finals do not count: few take part."""
    record = api.study(spec, device, folder, resume=(folder / HEADER).exists()).record
    trials = [trial for trial in record.trials if trial.measurement]
    seen = [seen_of(trial) for trial in trials]
    predicted = [trial.prediction.mlups if trial.prediction else 1.0 for trial in trials]
    return _world(spec, [from_flat(trial.config) for trial in trials], seen, predicted)


def by_processor_time(spec: StudySpec, folder: Path) -> World:
    """Return the speeds of all configurations of one thread by processor time, kept in a file of the folder."""
    assert spec.kernel_backend == "cpu"
    device = open_cpu()
    space = legal_set(spec.case, "cpu", {**spec.axes["cpu"], "threads": (1,)}, device.limits)
    kept = folder / "processor-time.json"
    speeds: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    folder.mkdir(parents=True, exist_ok=True)
    for config in space.configs:
        if config.key not in speeds:
            program = render(spec.case, config)
            assert isinstance(program, OwnProgram)
            simulation = OwnSimulation(program, compile_cpu(program), device)
            speeds[config.key] = mlups(spec.case.sites, 1, _step_s(simulation))
            kept.write_text(json.dumps(speeds, indent=1))
    found = [Seen(speeds[config.key]) for config in space.configs]
    return _world(spec, space.configs, found, [1.0] * len(found))


def _step_s(simulation: OwnSimulation) -> float:
    """Return the processor time of a launch: the least mean of several runs."""
    excite(simulation)
    simulation.step(2)
    means = []
    for _ in range(_REPEATS):
        begin, steps = time.thread_time(), 0
        while (spent := time.thread_time() - begin) < _LEAST_S:
            simulation.step(2)
            steps += 2
        means.append(spent / steps)
    return min(means)


def _world(spec: StudySpec, configs: Sequence[KernelConfig], seen: Sequence[Seen], predicted: Sequence[float]) -> World:
    truth = np.array([one.mlups or np.nan for one in seen])
    expected = np.array([predicted, predicted]).T
    each = np.ones(len(truth))
    backend = spec.kernel_backend or ""
    return World(spec.name, backend, tuple(configs), tuple(seen), truth, expected, expected, expected, each, each, 0.01)


if __name__ == "__main__":
    main()
