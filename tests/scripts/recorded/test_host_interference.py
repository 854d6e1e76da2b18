"""Machines whose neighbours change what they do: glances beside samples, and predictions for the hour of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from lbmtune.catalogue.config import cpu
from lbmtune.measure.calibration.cpu_bench import Probe
from lbmtune.measure.calibration.interference_monitor import SAMPLE_RATIO, InterferenceMonitor
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.sampling import summary, take
from lbmtune.model.machine.description import CpuCalibration
from lbmtune.model.machine.memory_walks import GLANCED, Filling, glance
from lbmtune.model.predict import predict
from lbmtune.records import Conditions
from lbmtune.records.remarks import unsteadiness
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.page import page
from lbmtune.report.tables import conditions_table
from lbmtune.runtime import Simulation
from scripts.recorded.host_interference import under_conditions
from tests.model.cpu.test_cpu_model import CASE as DOMAIN
from tests.model.cpu.test_cpu_model import FOUND, MACHINE
from tests.support.devices.fake_device import CASE, FakeDevice, compiler, config, renderer
from tests.support.studies.made_up_records import cpu_study

ONE = glance(MACHINE.environment.vector_bits)
FILLING = Filling(ONE, GLANCED).name
LAST = dict.fromkeys(FOUND.walks_bytes_per_s, 90000000000.0)
CPU = replace(
    FOUND,
    last_cached_bytes_per_s=LAST,
    filled_bytes_per_s={FILLING: 70e9},
    mixed_per_s={"64": 4e9},
    worked_per_s={"64": 2.5e9},
)
DESCRIBED = replace(MACHINE, cpu=CPU, thread_bytes_per_s=11e9, caches_bytes={**MACHINE.caches_bytes, "L3": 32 << 20})
TILES = cpu.Wavefront(row_padding=15, row_tail="peeled", threads=4, tile=(64, 1))


def rates(found: CpuCalibration) -> dict[str, float]:
    return {
        "memory": found.walks_bytes_per_s[ONE.name],
        "one thread": found.thread_walks_bytes_per_s[ONE.name],
        "inside": found.last_cached_bytes_per_s[ONE.name],
        "filled": found.filled_bytes_per_s[FILLING],
        "near": found.cached_bytes_per_s["64"],
        "multiply": found.multiply_add_per_s["64"],
        "worked": found.worked_per_s["64"],
        "mixed": found.mixed_per_s["64"],
        "divide": found.divide_per_s["64"],
        "lost": 1 / found.refill_s,
    }


@pytest.mark.parametrize(
    ("conditions", "changed"),
    [
        (Conditions(), set()),
        (Conditions(memory_bytes_per_s=FOUND.walks_bytes_per_s[ONE.name] / 2), {"memory", "one thread"}),
        (Conditions(last_cache_bytes_per_s=35e9), {"inside", "filled"}),
        (Conditions(work_per_s=1.25e9), {"near", "multiply", "worked", "mixed", "divide", "lost"}),
    ],
)
def test_each_glance_changes_the_rates_that_it_tells_of(conditions: Conditions, changed: set[str]) -> None:
    found = under_conditions(DESCRIBED, conditions)
    assert found.cpu is not None
    then, now = rates(CPU), rates(found.cpu)
    assert {name for name in then if now[name] != then[name]} == changed
    assert all(now[name] == pytest.approx(then[name] / 2) for name in changed)
    halved = bool(conditions.memory_bytes_per_s)
    assert found.in_place_bytes_per_s == pytest.approx(DESCRIBED.in_place_bytes_per_s / (1 + halved))
    assert found.thread_bytes_per_s == pytest.approx(11e9 / (1 + halved))


def test_a_machine_that_does_half_of_everything_takes_twice_as_long() -> None:
    half = Conditions(
        memory_bytes_per_s=FOUND.walks_bytes_per_s[ONE.name] / 2,
        last_cache_bytes_per_s=35e9,
        work_per_s=1.25e9,
    )
    described = predict(DOMAIN, TILES, DESCRIBED, None)
    then = predict(DOMAIN, TILES, under_conditions(DESCRIBED, half), None)
    assert then.mlups == pytest.approx(described.mlups / 2)


def test_every_figure_of_a_machine_that_does_half_of_everything_is_another() -> None:
    """By the unit in its name: rates are half, times are double, and shares of what hides stay."""
    known = replace(CPU, hidden={"in place, 64 bytes": 0.5}, refills_s={"in place, 64 bytes, 19 together": 2e-9})
    described = replace(DESCRIBED, cpu=known)
    half = Conditions(
        memory_bytes_per_s=FOUND.walks_bytes_per_s[ONE.name] / 2,
        last_cache_bytes_per_s=35e9,
        work_per_s=1.25e9,
    )
    then = under_conditions(described, half)
    for before, after in ((described, then), (described.cpu, then.cpu)):
        assert before
        assert after
        for one in fields(before):
            unit = 0.5 if one.name.endswith("_per_s") else 2.0 if one.name.endswith("_s") else 1.0
            was, now = getattr(before, one.name), getattr(after, one.name)
            if one.name == "cpu":
                continue
            if unit == 1.0:
                assert now == was, one.name
            elif isinstance(was, dict):
                assert now == pytest.approx({name: unit * rate for name, rate in was.items()}), one.name
            else:
                assert now == pytest.approx(unit * was), one.name


def test_nothing_is_known_of_the_hour_of_a_machine_that_was_not_calibrated() -> None:
    plain = replace(MACHINE, cpu=None)
    assert under_conditions(plain, Conditions(memory_bytes_per_s=1e9)) is plain


def monitor_of(device: FakeDevice, made: list[str], takes_s: float) -> Callable[[], InterferenceMonitor]:
    def make() -> InterferenceMonitor:
        made.append("gauge")
        glances = {
            "memory_bytes_per_s": Probe(lambda: made.append("memory"), 4e6, cached=False),
            "work_per_s": Probe(lambda: made.append("work"), 8e6, cached=True),
        }
        return InterferenceMonitor(device, glances, takes_s)  # type: ignore[arg-type]

    return make


@pytest.mark.parametrize(("takes_s", "looked"), [(1e-3 / SAMPLE_RATIO, True), (1.1e-3 / SAMPLE_RATIO, False)])
def test_a_sample_that_is_long_enough_comes_with_a_glance(takes_s: float, looked: bool) -> None:
    """Each run of this device takes a millisecond: so does a walk of 4 MB, which is 4 GB/s."""
    device, made = FakeDevice(durations_s=lambda: 1e-3), list[str]()
    program = renderer(CASE, config())
    pooled = PooledDevice(device, monitor_of(device, made, takes_s))
    simulation = Simulation(program, compiler(program), pooled)
    unseen = take(simulation, 2, TimingProtocol(), with_conditions=False)
    assert unseen.conditions.memory_bytes_per_s is None
    assert not made
    for _ in range(2):
        found = take(simulation, 2, TimingProtocol()).conditions
        assert found.memory_bytes_per_s == (pytest.approx(4e9) if looked else None)
        assert found.work_per_s == (pytest.approx(8e9) if looked else None)
        assert found.cpu_share is not None
    look = ["memory", "work", "work"]  # what stays in a cache is not there after a sample: the second time counts
    assert made == ["gauge", *(2 * look if looked else [])]


def test_the_glance_of_a_measurement_is_the_mean_of_its_moments() -> None:
    """What has two speeds in turn has none in the middle."""
    several = [
        Conditions(memory_bytes_per_s=rate, work_per_s=work) for rate, work in ((3e9, 1e9), (9e9, 3e9), (3e9, 3e9))
    ]
    found = summary([*several, Conditions()])
    assert found == Conditions(memory_bytes_per_s=pytest.approx(5e9), work_per_s=pytest.approx(7e9 / 3))


def hours(memory: list[float], last: list[float]) -> StudyRecord:
    """The study made up, with glances beside the samples of its first trials that have a speed."""
    record = cpu_study()
    seen = [Conditions(memory_bytes_per_s=a, last_cache_bytes_per_s=b) for a, b in zip(memory, last, strict=True)]
    timed = [trial for trial in record.trials if trial.measurement is not None]
    changed = {
        trial.number: replace(trial, measurement=replace(trial.measurement, conditions=conditions))
        for trial, conditions in zip(timed, seen, strict=False)
        if trial.measurement is not None
    }
    return replace(record, trials=tuple(changed.get(trial.number, trial) for trial in record.trials))


@pytest.mark.parametrize(
    ("memory", "last", "said"),
    [
        ([40e9, 36e9, 44e9], [100e9, 90e9, 112e9], ""),
        (
            [40e9, 27e9, 44e9],
            [100e9, 90e9, 110e9],
            "during the search memory had 68% to 110% of its usual speed",
        ),
        (
            [40e9, 36e9, 44e9],
            [100e9, 60e9, 110e9],
            "during the search the last cache had 60% to 110% of its usual speed",
        ),
        (
            [40e9, 41e9, 1000e9],
            [100e9, 90e9, 110e9],
            "during the search memory had 4.0% to 100% of the highest speed seen, and half of the samples at most "
            "4.1%: the machine was disturbed most of the time. Speeds of the search are too low",
        ),
        (
            [40e9, 36e9, 44e9],
            [100e9, 100e9, 126e9],
            "during the search the last cache had 79.4% to 100% of the highest speed seen, and half of the samples at "
            "most 79.4%: the machine was disturbed most of the time.",
        ),
    ],
)
def test_a_study_on_a_machine_that_changed_says_so(memory: list[float], last: list[float], said: str) -> None:
    record = hours(memory, last)
    assert unsteadiness(record).startswith(said)
    assert bool(unsteadiness(record)) == bool(said)
    assert ('id="unsteadiness"' in page(record)) == bool(said)
    assert unsteadiness(cpu_study()) == ""


def test_the_page_tells_what_was_gone_through_beside_the_samples_of_the_winner() -> None:
    told = dict(conditions_table(Conditions(memory_bytes_per_s=38e9, work_per_s=3.4e9)))
    work = "3.4 billion vector operations per second and core"
    assert told == {"memory probe": "38 GB/s", "arithmetic probe": work}
