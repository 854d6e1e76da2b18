"""Output is measured by the worker that has the device, and a disk that takes no file ends the study, not a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from lbmtune.catalogue.config import cpu
from lbmtune.catalogue.problem.flows import box
from lbmtune.errors import InputError
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.output import Output
from lbmtune.records.spec import TimingProtocol

CASE = box("d3q19", "bgk", (32, 16, 16))
CONFIG = cpu.Direct(compute="fp64", row_offset=0, storage="fp64", vector_bits=0, wrap="select")


def test_output_is_measured_without_a_new_verification(tmp_path: Path) -> None:
    with Evaluator(CASE, "cpu", TimingProtocol()) as evaluator:
        assert evaluator.output_rates(tmp_path).folder == str(tmp_path)
        (trial,) = evaluator.output([CONFIG], Output(macroscopics=5, save=50), tmp_path)
        assert trial.outcome is Outcome.OK, trial.reason
        assert [(one.kind, one.every) for one in trial.output] == [("macroscopics", 5), ("save", 50)]
        assert trial.verification is None
        with pytest.raises(InputError, match=r"cannot create a file in .*; choose a folder with room by --scratch"):
            evaluator.output_rates(tmp_path / "nowhere")
