"""Runs of seconds: what is counted, what they draw, and how a study takes them in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lbmtune.backend.cpu import device as rapl
from lbmtune.backend.cuda import nvml
from lbmtune.catalogue.config import KernelConfig
from lbmtune.measure.timing.state import WrongResultError
from lbmtune.measure.timing.sustained import Reading, energy, sustain, throttled
from lbmtune.records import Conditions, Outcome, Sustained, Trial
from lbmtune.records.spec import Axes, TimingProtocol
from lbmtune.records.study import StudyRecord
from lbmtune.runtime import Simulation
from lbmtune.search.study import run_study
from tests.support.devices.fake_device import CASE, FakeDevice, compiler, config, renderer
from tests.support.studies.fake_study import FakeEvaluator, header, one_family, search, space_of, spec

PROTOCOL = TimingProtocol(warmup_s=0.004, sustained_s=0.4, settling_s=0.2)
CAPPED = Conditions(sm_clock_hz=1.7e9, power_w=690.0, throttle=("software power cap",))
FREE = Conditions(sm_clock_hz=1.9e9, power_w=650.0)
FOUND = Sustained(mlups=100.0, seconds=2.0, steps=50, sites=4_000_000, slices_s=(0.04,), energy_j=1400.0)


def simulation(device: FakeDevice, fault: str = "right") -> Simulation:
    program = renderer(CASE, config(fault, "cuda"))
    return Simulation(program, compiler(program), device)


def device(slices_s: Iterator[float], weather: Iterator[Conditions]) -> FakeDevice:
    """Looks of one cycle of two steps take 2 ms, slices what they are scripted to take."""
    durations = chain(repeat(2e-3, 4), slices_s)
    return FakeDevice("cuda", durations_s=lambda: next(durations), weather=lambda: next(weather))


def test_what_comes_first_does_not_count() -> None:
    """0.2 s of settling and 0.4 s that count, at 1 ms a step: two slices of 100 steps, and four that are slower."""
    slow = device(chain(repeat(0.1, 2), repeat(0.125, 9)), chain(repeat(FREE, 3), repeat(CAPPED)))
    found = sustain(simulation(slow), PROTOCOL)
    assert found.steps == 400
    assert found.seconds == pytest.approx(0.5)
    assert found.mlups == pytest.approx(CASE.sites * 400 / 0.5 / 1e6)
    assert found.slices_s == pytest.approx((1.25e-3,) * 4)
    assert found.throttled == {"software power cap": 1.0}
    assert found.conditions.sm_clock_hz == CAPPED.sm_clock_hz
    assert (found.energy_source, found.power_w, found.energy_j) == ("mean power", 690, pytest.approx(345))
    assert found.nj_per_update == pytest.approx(345 / (400 * CASE.sites) * 1e9)
    assert not found.disturbed


def test_a_run_that_is_faster_than_its_warm_up_lasts_as_long() -> None:
    found = sustain(simulation(device(repeat(0.09), repeat(FREE))), PROTOCOL)
    assert (found.steps, found.seconds) == (500, pytest.approx(0.45))


def test_a_long_run_has_no_more_slices_to_spare_than_a_short_one() -> None:
    """At 1 ms a step: half a second of slices beyond a run of four; those are not counted unless it is faster."""
    taken, long = count(), replace(PROTOCOL, sustained_s=4.0)
    slices = (0.1 for _ in taken)
    found = sustain(simulation(device(slices, repeat(FREE))), long)
    assert found.seconds == pytest.approx(4.0, abs=0.11)
    assert next(taken) == 2 + 40 + 5


def test_a_hot_device_is_marked_and_a_wrong_state_refused() -> None:
    hot = replace(FREE, throttle=("hardware thermal slowdown",))
    assert sustain(simulation(device(repeat(0.1), repeat(hot))), PROTOCOL).disturbed
    with pytest.raises(WrongResultError, match="not finite"):
        sustain(simulation(device(repeat(0.1), repeat(FREE)), "nan"), PROTOCOL)


def test_energy_is_that_of_the_counter_between_looks_spread_over_the_run() -> None:
    looks = [Reading(10.0, 1000.0, FREE), Reading(10.5, 9e9, FREE), Reading(11.0, 1600.0, FREE)]
    assert energy(looks, 1.5) == (pytest.approx(900.0), "counter")
    without = [look._replace(energy_j=None) for look in looks]
    assert energy(without, 2.0) == (pytest.approx(1300.0), "mean power")
    assert energy([Reading(0.0, None, Conditions())], 2.0) == (None, "")


def test_reasons_are_counted_by_looks() -> None:
    assert throttled([CAPPED, CAPPED, FREE, CAPPED]) == {"software power cap": 0.75}


def test_nvml_counts_millijoules(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlDeviceGetHandleByPciBusId=lambda bus: "handle",
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: 1_234_567,
    )
    monkeypatch.setattr(nvml, "_nvml", lambda: library)
    assert nvml.Monitor("0000:0A:00.0").energy_j == pytest.approx(1234.567)


def test_packages_are_summed_up_over_the_turns_of_their_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rapl, "_POWER_ZONES", tmp_path)
    assert rapl.packages_j() is None

    def say(zone: str, microjoules: int) -> None:
        (tmp_path / zone).mkdir(exist_ok=True)
        (tmp_path / zone / "energy_uj").write_text(f"{microjoules}\n")
        (tmp_path / zone / "max_energy_range_uj").write_text("9999999\n")

    say("intel-rapl:0", 9_000_000)
    say("intel-rapl:0:0", 5_000_000)  # cores, which are part of the package
    say("intel-rapl:1", 2_000_000)
    assert rapl.packages_j() == pytest.approx(11.0)
    say("intel-rapl:0", 1_000_000)
    assert rapl.packages_j() == pytest.approx(13.0)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert rapl.packages_j() is None


def studied(folder: Path, answers: Any, axes: Axes | None = None, **how: Any) -> StudyRecord:
    asked = spec(axes=axes, protocol=TimingProtocol(finalists=2, sustained_top=4))
    needs = replace(search(folder, FakeEvaluator()), sustain=answers)
    return run_study(needs, header(asked), space_of(asked), **how)


def answered(numbers: Iterator[int], outcome: Outcome = Outcome.OK) -> Any:
    def sustain_all(configs: Sequence[KernelConfig], proven: Sequence[bool], _: float) -> list[Trial]:
        assert len(configs) == len(proven)
        found = FOUND if outcome is Outcome.OK else None
        return [
            Trial(number=next(numbers), key=c.key, config=c.flat(), outcome=outcome, reason="", sustained=found)
            for c in configs
        ]

    return sustain_all


def test_the_best_of_a_study_are_run_for_seconds_once(tmp_path: Path) -> None:
    record = studied(tmp_path, answered(count()))
    fastest = sorted(record.ranked[1:], key=lambda trial: -(trial.mlups or 0))
    assert [bool(trial.sustained) for trial in (record.ranked[0], *fastest[:4])] == [True] * 4 + [False]
    assert any(trial.final and not trial.sustained for trial in record.trials), "families that are not among the best"
    numbers = count()
    studied(tmp_path, answered(numbers), resume=True)
    assert next(numbers) == 0


def test_what_had_no_time_to_run_for_seconds_keeps_its_speed(tmp_path: Path) -> None:
    record = studied(tmp_path, answered(count(), Outcome.TIMED_OUT))
    assert all(trial.outcome is Outcome.OK and not trial.sustained for trial in record.ranked[:4])
    assert record.winner == record.ranked[0]
    assert record.winner.final
    assert record.winner.mlups


def test_what_fails_in_the_run_of_seconds_has_no_speed(tmp_path: Path) -> None:
    """And the next best are proven and measured together in the place of finalists."""
    record = studied(tmp_path, answered(count(), Outcome.CRASHED), one_family())
    failed = [trial for trial in record.trials if trial.outcome is Outcome.CRASHED]
    assert len(failed) == 4
    assert not any(trial.mlups for trial in failed)
    best = max(trial.measurement.mlups for trial in record.ranked if trial.measurement)
    assert record.winner
    assert record.winner.measurement
    assert record.winner.measurement.mlups == best < min(t.measurement.mlups for t in failed if t.measurement)
    assert [bool(trial.final) for trial in record.ranked[:3]] == [True, True, False]


def test_records_without_it_are_read_as_before() -> None:
    trial = Trial(number=1, key="k", config={}, outcome=Outcome.OK, sustained=FOUND)
    old = msgspec.json.decode(msgspec.json.encode(trial))
    del old["sustained"]
    assert msgspec.convert(old, Trial) == replace(trial, sustained=None)
    assert msgspec.json.decode(msgspec.json.encode(trial), type=Trial) == trial
