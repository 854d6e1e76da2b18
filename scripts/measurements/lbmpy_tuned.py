"""Tune the kernels of lbmpy, and time the fastest one beside its defaults, turn by turn.

    python -m scripts.measurements.lbmpy_tuned describe lbmpy.json --backend cuda    where lbmpy is installed
    python -m scripts.measurements.lbmpy_tuned measure lbmpy.json OUT --device 0     anywhere; lbmpy is not needed

A default is a streaming pattern with fields fzyx and, on a CPU, the loop as the compiler makes it, on a GPU thread
blocks of 128x1x1; lbmpy's own default is pull. The study in OUT is resumed if it is there. Ratios are of medians of
turns that alternate, so that a machine may drift.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import msgspec

from lbmtune import api
from lbmtune.backend.cpu import open_cpu
from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.own_kernel.config import OwnConfig, family_of
from lbmtune.files.lbmpykernel import PATTERNS, lbmpy_study
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Trial
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import decoded
from lbmtune.records.whole_files import HEADER


def main() -> None:
    """Describe, or measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    describe = actions.add_parser("describe")
    describe.add_argument("file", type=Path)
    describe.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    describe.add_argument("--set", action="append", default=[], dest="sets", help="case.domain=..., precision=fp64")
    measure = actions.add_parser("measure")
    measure.add_argument("file", type=Path)
    measure.add_argument("out", type=Path)
    measure.add_argument("--device", default="cpu")
    measure.add_argument("--time", type=float, default=240, help="seconds of the study")
    measure.add_argument("--race", type=float, default=60, help="seconds of the turns")
    options = parser.parse_args()
    if options.action == "describe":
        bits = open_cpu().limits.vector_bits if options.backend == "cpu" else 0
        options.file.write_bytes(msgspec.json.encode(lbmpy_study(options.sets, options.backend, bits)))
    else:
        spec = decoded(options.file.read_bytes(), StudySpec)
        spec = replace(spec, budget=replace(spec.budget, seconds=options.time))
        print(table(compared(spec, options.device, options.out, options.race)))


def compared(spec: StudySpec, device: str, folder: Path, seconds: float) -> list[Trial]:
    """Return the finals of the defaults, lbmpy's own first, and of the fastest that a study finds, the last."""
    assert spec.kernel is not None
    family = family_of(spec.kernel)
    winner = api.study(spec, device, folder, resume=(folder / HEADER).exists()).winner
    threads = {"threads": winner.config["threads"]} if spec.kernel_backend == "cpu" else {}
    defaults = [family.parse({"PATTERN": pattern, **threads}) for pattern in PATTERNS]
    configs = list(dict.fromkeys([*defaults, from_flat(winner.config)]))
    with Evaluator(spec.case, device, spec.protocol) as evaluator:
        return evaluator.finals(configs, race_s=seconds)


def table(trials: list[Trial]) -> str:
    """Return rows of a page: what was timed, its speed with the interval, and the ratio to lbmpy's default."""
    rows = ["| kernel | MLUPS | interval, 95 % | over the default | disturbed |", "|---|---:|---:|---:|---|"]
    usual = trials[0].final
    for trial in trials:
        found, config = trial.final, from_flat(trial.config)
        assert isinstance(config, OwnConfig)
        if found is None or usual is None:
            rows.append(f"| {_said(config.values)} | {trial.outcome}: {trial.reason} | | | |")
            continue
        interval = f"{found.ci_low_mlups:.1f} to {found.ci_high_mlups:.1f}"
        ratio, disturbed = found.mlups / usual.mlups, "yes" if found.disturbed else "no"
        rows.append(f"| {_said(config.values)} | {found.mlups:.1f} | {interval} | {ratio:.2f} | {disturbed} |")
    return "\n".join(rows)


def _said(values: dict[str, Scalar]) -> str:
    return ", ".join(map(str, values.values()))


if __name__ == "__main__":
    main()
