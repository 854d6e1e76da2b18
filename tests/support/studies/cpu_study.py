"""Run a small study on the real processor, as a program that ends at a chosen stage (`main`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lbmtune.catalogue.problem.flows import box
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records.header import StudyHeader
from lbmtune.records.spec import Budget, StudySpec, TimingProtocol
from lbmtune.search.spaces.space import legal_set
from lbmtune.search.study import run_study
from tests.support.studies import fake_study

SPEC = StudySpec(
    name="small",
    case=box("d2q9", "bgk", (64, 48, 1)),
    axes={"cpu": {"scheme": ("aa", "pull"), "vector_bits": (0, 256), "loop": ("zy",), "row_offset": (16,)}},
    budget=Budget(trials=4),
    # a busy machine must not decide what this test finds
    protocol=TimingProtocol(
        max_samples=5,
        confidence=9.0,
        min_cpu_share=0.0,
        finalists=2,
        final_sample_s=0.001,
        final_rounds=5,
        bail_out=1e9,
    ),
)


def main(folder: str, stage: str = "", number: str = "0") -> None:
    """Run or resume the study in a folder; end with SIGKILL when `stage` of trial `number` begins."""

    def at(trial: int, now: str) -> None:
        if now == stage and trial >= int(number):
            os.kill(os.getpid(), 9)

    path = Path(folder)
    with Evaluator(SPEC.case, "cpu", SPEC.protocol, fake_study.predict, on_stage=at) as evaluator:
        space = legal_set(SPEC.case, "cpu", SPEC.axes["cpu"], evaluator.limits)
        header = StudyHeader(
            spec=SPEC,
            backend="cpu",
            environment=evaluator.environment,
            ceiling=fake_study.header(fake_study.spec()).ceiling,
            legal_configurations=len(space.configs),
            date="2000-01-01T00:00:00+00:00",
            version="0",
        )
        search = fake_study.search(path, evaluator)
        run_study(search, header, space, resume=(path / "study.json").exists())


if __name__ == "__main__":
    main(*sys.argv[1:])
