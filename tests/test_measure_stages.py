"""What the measurer makes of a measurement, without a process around it."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from fake_device import CASE, FakeDevice, compiler, config, renderer
from lbmtune.measure.arena import Arena
from lbmtune.measure.stages import Measured, Work, rehearse, tried
from lbmtune.records import Conditions, Outcome
from lbmtune.records.study import TimingProtocol

PROTOCOL = TimingProtocol(verify_periods=1, warmup_s=0.002, sample_s=0.001, max_samples=6)
PROGRAM = renderer(CASE, config("right", "cuda"))


def outcome(durations_s: list[float], clock_hz: float) -> Measured:
    times = cycle(durations_s)
    device = FakeDevice("cuda", durations_s=lambda: next(times), weather=lambda: Conditions(sm_clock_hz=clock_hz))
    stages: list[str] = []
    found = tried(PROGRAM, compiler(PROGRAM), Arena(device), Work(path=Path("unused")), PROTOCOL, stages.append)
    assert stages == ["verify", "measure"]
    return found


@pytest.mark.parametrize(
    ("durations_s", "clock_hz", "expected"),
    [
        ([1e-3, 5e-3], 1e9, Outcome.UNSTABLE_TIMING),
        ([1e-3, 5e-3], 2e9, Outcome.OK),
        ([1e-3], 1e9, Outcome.OK),
    ],
)
def test_a_disturbed_and_wide_measurement_is_unstable(
    durations_s: list[float], clock_hz: float, expected: Outcome
) -> None:
    found = outcome(durations_s, clock_hz)
    assert found.outcome is expected
    assert found.measurement
    assert found.measurement.disturbed == (clock_hz < 1.5e9)
    assert ("95 % interval" in found.reason) == (expected is Outcome.UNSTABLE_TIMING)


def test_a_rehearsal_launches_nothing() -> None:
    program = renderer(CASE, config("device fault", "cuda"))
    rehearse(program, FakeDevice("cuda"))
