"""The losses of a kernel on a GPU, measured in the process and the memory of the trials."""

from __future__ import annotations

import pytest

from lbmtune.api.machines.measured_machines import borrowing, measured_machine
from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.profile import COPY, KERNEL, STREAMING, STREAMS
from lbmtune.records.spec import TimingProtocol

pytestmark = pytest.mark.gpu
CASE, CONFIG = box("d3q19", "bgk", (192, 192, 192)), cuda.Direct(block=(128, 1, 1))


def test_losses_are_measured_beside_trials() -> None:
    machine = borrowing(measured_machine("0"))
    with Evaluator(CASE, "0", TimingProtocol()) as evaluator:
        evaluator.submit(0, CONFIG)
        trial = evaluator.next()
        assert trial.outcome is Outcome.OK, trial.reason
        found = evaluator.losses(CONFIG, machine)
        assert {COPY, STREAMS, STREAMING, KERNEL} <= {one.name for one in found.rungs}
        assert found.apart, "reads, writes and collision alone"
        assert found.rung(KERNEL).mlups == pytest.approx(trial.mlups, rel=0.1)
        assert found.rung(KERNEL).seconds > 0.8 * found.rung(COPY).seconds
        assert found.sustained is None
        evaluator.submit(1, CONFIG)
        assert evaluator.next().outcome is Outcome.OK, "and trials go on"
