"""The timing protocol on a device whose clock and weather are scripted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, cycle, pairwise, repeat

import numpy as np
import pytest

from lbmtune.catalogue.precision import storage
from lbmtune.measure.timing import interleaved, protocol, sampling, state
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.records import Conditions, Measurement
from lbmtune.records.comparison.statistics import interval_rank, median_interval, paired_ratio
from lbmtune.records.remarks import _cause
from lbmtune.records.spec import TimingProtocol
from lbmtune.report.tables import conditions_table
from lbmtune.runtime import Simulation
from tests.support.devices.fake_device import CASE, FakeDevice, compiler, config, renderer

PROTOCOL = TimingProtocol(
    warmup_s=0.004, sample_s=0.002, final_sample_s=0.002, min_samples=5, max_samples=9, final_rounds=4
)
TIMED, SEEN = 6, 1
"""Runs before the first sample, at 1 ms each, and after how many of them the conditions are asked for."""
FAST = Conditions(sm_clock_hz=1.9e9)
SLOW = Conditions(sm_clock_hz=1.2e9)


def simulation(device: FakeDevice, fault: str = "right", backend: str = "cuda") -> Simulation:
    program = renderer(CASE, config(fault, backend))
    return Simulation(program, compiler(program), device)


def scripted(durations_s: object, weather: object = repeat(FAST)) -> FakeDevice:
    times, conditions = iter(durations_s), iter(weather)  # type: ignore[call-overload]
    return FakeDevice("cuda", durations_s=lambda: next(times), weather=lambda: next(conditions))


def test_a_steady_device_is_believed_after_the_fewest_samples() -> None:
    found = protocol.measure(simulation(scripted(chain([9.0], repeat(1e-3)))), PROTOCOL)
    assert len(found.samples_s) == PROTOCOL.min_samples
    assert not found.disturbed
    # two buffers make a cycle of two steps, which takes 1 ms; a sample has whole cycles and lasts 2 ms or more
    assert found.steps_per_sample == 4
    assert found.samples_s[0] == pytest.approx(1e-3 / 4)
    assert found.mlups == pytest.approx(CASE.sites / (1e-3 / 4) / 1e6)
    assert found.bandwidth_bytes_per_s == pytest.approx(found.bytes_per_update * found.mlups * 1e6)


def test_a_restless_device_is_sampled_to_the_limit() -> None:
    found = protocol.measure(simulation(scripted(cycle([1e-3, 1.1e-3, 1.2e-3]))), PROTOCOL)
    assert len(found.samples_s) == PROTOCOL.max_samples
    assert found.ci_low_mlups < found.mlups < found.ci_high_mlups


def test_samples_at_a_low_clock_are_repeated() -> None:
    weather = chain(repeat(FAST, SEEN + 2), [SLOW, SLOW], repeat(FAST))
    durations = chain(repeat(1e-3, TIMED + 2), [5e-3, 5e-3], repeat(1e-3))
    found = protocol.measure(simulation(scripted(durations, weather)), PROTOCOL)
    assert max(found.samples_s) < 1e-3
    assert not found.disturbed
    assert found.conditions.sm_clock_hz == FAST.sm_clock_hz


def test_a_device_that_stays_slow_is_marked() -> None:
    found = protocol.measure(simulation(scripted(repeat(1e-3), repeat(SLOW))), PROTOCOL)
    assert found.disturbed
    assert found.samples_s


def test_the_warm_up_waits_for_the_clock() -> None:
    weather = chain(repeat(SLOW, 30), repeat(FAST))
    found = protocol.measure(simulation(scripted(repeat(1e-3), weather)), PROTOCOL)
    assert not found.disturbed


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_the_warm_up_does_not_wait_for_a_processor(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """As others use it, it stays busy: 4 ms are over after as many runs of 1 ms as on one that is idle."""
    monkeypatch.setattr(sampling, "kernel_share", lambda *_: share)
    ran: list[float] = []
    device = FakeDevice("cpu", durations_s=lambda: (ran.append(1e-3), 1e-3)[1])
    looks = sampling.warm_up(simulation(device, backend="cpu"), PROTOCOL)
    assert [bool(look.flaw) for look in looks.samples] == [share < PROTOCOL.min_cpu_share] * 3
    assert len(ran) == TIMED


def test_the_warm_up_of_a_tiny_domain_asks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of a microsecond, and a clock that stays low: looks grow until there are a few hundred of them at most."""
    taken: list[int] = []

    def take(_: Simulation, steps: int, protocol: TimingProtocol, *, with_conditions: bool = True) -> sampling.Sample:
        taken.append(steps)
        return sampling.Sample(1e-6, SLOW, sampling.flaw(SLOW, 1.98e9, protocol))

    monkeypatch.setattr(sampling, "take", take)
    monkeypatch.setattr(sampling, "unchanged", lambda before, after: False)
    looks = sampling.warm_up(simulation(FakeDevice("cuda")), PROTOCOL)
    assert looks.steps == taken[-1] == 512  # two, doubled until 0.5 ms are over, an eighth of the warm-up
    assert len(looks.samples) == 3
    assert len(taken) < 200


def test_throttling_voids_a_sample_but_a_power_cap_does_not() -> None:
    hot = replace(FAST, throttle=("hardware thermal slowdown",))
    capped = replace(FAST, throttle=("software power cap",))
    assert sampling.flaw(hot, 2e9, PROTOCOL) == "hardware thermal slowdown"
    assert sampling.flaw(capped, 2e9, PROTOCOL) == ""
    assert sampling.summary([FAST, capped]).throttle == ("software power cap",)


def test_processes_of_others_void_a_sample_and_are_named() -> None:
    beside = [replace(FAST, others=(f"python ({number})",)) for number in (8, 7, 8)]
    assert sampling.flaw(beside[0], 2e9, PROTOCOL) == "other processes on the GPU: python (8)"
    together = sampling.summary([FAST, *beside])
    assert together.others == ("python (7)", "python (8)")
    assert ("other processes on the GPU", "python (7), python (8)") in conditions_table(together)
    assert "other processes used the GPU (python (7), python (8))" in _cause(together)


def test_a_low_cpu_share_voids_a_sample() -> None:
    assert sampling.flaw(Conditions(cpu_share=0.9), None, PROTOCOL) == "CPU share 0.90"
    assert sampling.flaw(Conditions(cpu_share=0.96), None, PROTOCOL) == ""


def test_a_hopeless_candidate_is_left_after_the_looks() -> None:
    found = protocol.measure(simulation(scripted(repeat(1e-3))), PROTOCOL, incumbent_s=0.35e-3)
    assert len(found.samples_s) == 3
    assert found.steps_per_sample == 2
    assert found.dismissed
    kept = protocol.measure(simulation(scripted(repeat(1e-3))), PROTOCOL, incumbent_s=0.45e-3)
    assert len(kept.samples_s) == PROTOCOL.min_samples
    assert not kept.dismissed


@pytest.mark.parametrize(("n", "level"), [(3, 0.75), (5, 0.9375), (TimingProtocol().min_samples, 0.96875)])
def test_the_fewest_samples_give_a_95_percent_interval(n: int, level: float) -> None:
    """All samples lie on one side of the median with probability 2^-n, twice."""
    assert interval_rank(n) == 0
    assert 1 - 2 * 0.5**n == level
    assert (level >= 0.95) == (n >= TimingProtocol().min_samples)


def test_a_low_clock_is_no_reason_to_give_up() -> None:
    found = protocol.measure(simulation(scripted(repeat(1e-3), repeat(SLOW))), PROTOCOL, incumbent_s=0.1e-3)
    assert len(found.samples_s) > 3


def on_a_busy_cpu(monkeypatch: pytest.MonkeyPatch, shares: object) -> Measurement:
    """Ten times slower than the best so far, with these shares of the processor."""
    had = iter(shares)  # type: ignore[call-overload]
    monkeypatch.setattr(sampling, "kernel_share", lambda *_: next(had))
    device = FakeDevice("cpu", durations_s=lambda: 1e-3)
    return protocol.measure(simulation(device, backend="cpu"), PROTOCOL, incumbent_s=0.05e-3)


def test_nothing_is_dismissed_for_looks_that_were_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = on_a_busy_cpu(monkeypatch, repeat(0.8))
    assert not found.dismissed
    assert found.disturbed
    assert found.conditions.cpu_share == 0.8


def test_disturbed_looks_are_taken_again_before_they_dismiss(monkeypatch: pytest.MonkeyPatch) -> None:
    found = on_a_busy_cpu(monkeypatch, chain(repeat(0.8, 6), repeat(1.0)))
    assert found.dismissed
    assert not found.disturbed
    assert found.conditions.cpu_share == 1.0
    assert len(found.samples_s) == 3


@pytest.mark.parametrize(("fault", "message"), [("idle", "left the state as it was"), ("nan", "not finite numbers")])
def test_a_wrong_run_has_no_speed(fault: str, message: str) -> None:
    with pytest.raises(state.WrongResultError, match=message):
        protocol.measure(simulation(scripted(repeat(1e-3)), fault), PROTOCOL)


def test_zeros_have_no_speed() -> None:
    run = simulation(scripted(repeat(1e-3)))
    run.state.fill(0)
    with pytest.raises(state.WrongResultError, match="zeros"):
        state.check_state(run)


def test_the_timed_state_is_alive() -> None:
    run = simulation(scripted(repeat(1e-3)))
    state.excite(run)
    rho, velocity = run.macroscopic()
    assert 1.0 < rho.mean() < 1.01
    assert rho.std() > 0
    assert 0 < abs(velocity).max() < 0.01
    run.step(200)
    assert np.isfinite(run.populations()).all()
    assert abs(run.macroscopic()[0] - 1).min() > 1e-4, "it must not settle to zeros as stored"


def test_interleaved_rounds_belong_together() -> None:
    def device(step_s: float) -> Callable[[], float]:
        drift = iter(np.linspace(1, 2, 100))
        return lambda: step_s * float(next(drift))

    runs = [simulation(FakeDevice("cuda", durations_s=device(s), weather=lambda: FAST)) for s in (1e-2, 2e-2)]
    first, second = interleaved.measure_interleaved(runs, PROTOCOL)
    assert len(first.samples_s) == len(second.samples_s) == PROTOCOL.final_rounds
    ratio = paired_ratio(second.samples_s, first.samples_s)
    assert (ratio.low, ratio.high) == (pytest.approx(2, rel=0.02), pytest.approx(2, rel=0.02))


def test_none_always_follows_the_same_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four kernels each follows each other one in some round, and each has one sample of every round."""
    monkeypatch.setattr(interleaved.time, "sleep", lambda _: None)
    device = FakeDevice("cuda", durations_s=lambda: 1e-2, weather=lambda: FAST)
    runs = [simulation(device) for _ in range(4)]
    turns: list[int | None] = []
    many = replace(PROTOCOL, final_rounds=30)
    found = interleaved.measure_interleaved(runs, many, turns.append)
    taken = [turn for turn in turns[4 : turns.index(None)] if turn is not None]  # behind those that prepare
    rounds = [taken[n : n + 4] for n in range(0, len(taken), 4)]
    assert len(rounds) == 30
    assert all(sorted(one) == [0, 1, 2, 3] for one in rounds)
    assert len({*pairwise(taken)} - {(n, n) for n in range(4)}) == 12
    assert all(len(one.samples_s) == 30 for one in found)


def test_each_runs_its_own_steps_in_its_own_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is told before is who runs; samples of the faster one have more steps."""
    monkeypatch.setattr(interleaved.time, "sleep", lambda _: None)
    turns: list[int | None] = []

    def device(mine: int, run_s: float) -> FakeDevice:
        def duration_s() -> float:
            assert turns[-1] == mine
            return run_s

        return FakeDevice("cuda", durations_s=duration_s, weather=lambda: FAST)

    runs_s = (1e-3, 1e-2, 0.5e-3)
    found = interleaved.measure_interleaved(
        [simulation(device(*one)) for one in enumerate(runs_s)], PROTOCOL, turns.append
    )
    assert len({one.steps_per_sample for one in found}) == 3
    for one, run_s in zip(found, runs_s, strict=True):
        assert one.samples_s == pytest.approx([run_s / one.steps_per_sample] * PROTOCOL.final_rounds)


@pytest.mark.parametrize(("backend", "rests"), [("cuda", 1.0), ("cpu", 0.0)])
def test_a_gpu_rests_after_each_turn_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch, backend: str, rests: float
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(interleaved.time, "sleep", slept.append)
    device = FakeDevice(backend, durations_s=lambda: 1e-3, weather=lambda: FAST)
    found = interleaved.measure_interleaved([simulation(device, backend=backend)] * 2, PROTOCOL)
    assert slept == [pytest.approx(1e-3)] * int(rests * 2 * PROTOCOL.final_rounds)
    assert [len(one.samples_s) for one in found] == [PROTOCOL.final_rounds] * 2


def test_a_flawed_sample_voids_its_round() -> None:
    weather = iter(chain(repeat(FAST, SEEN + 1), [SLOW], repeat(FAST)))
    runs = [
        simulation(FakeDevice("cuda", durations_s=lambda: 1e-2, weather=lambda: FAST)),
        simulation(FakeDevice("cuda", durations_s=lambda: 1e-2, weather=lambda: next(weather))),
    ]
    first, second = interleaved.measure_interleaved(runs, PROTOCOL)
    assert len(first.samples_s) == len(second.samples_s) == PROTOCOL.final_rounds
    assert not first.disturbed
    assert second.conditions.sm_clock_hz == FAST.sm_clock_hz


def test_what_does_not_share_its_state_well_begins_each_turn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The padding that one of them litters is where the other keeps its populations; alone each is right.

    A GPU rests after each turn of both goes.
    """
    slept: list[float] = []
    monkeypatch.setattr(interleaved.time, "sleep", slept.append)
    pooled = PooledDevice(FakeDevice("cuda", durations_s=lambda: 1e-2, weather=lambda: FAST))
    runs = []
    pooled.reset(1 << 24)
    for fault in ("touchy", "litter"):
        pooled.reset()
        program = renderer(CASE, config(fault, "cuda"))
        runs.append(Simulation(program, compiler(program), pooled))
    found = interleaved.measure_interleaved(runs, PROTOCOL)
    assert [len(one.samples_s) for one in found] == [PROTOCOL.final_rounds] * 2
    assert not any(one.disturbed for one in found)
    assert len(slept) == 2 * 2 * PROTOCOL.final_rounds


@pytest.mark.parametrize(
    ("name", "also"),
    [
        ("fp32", ""),
        ("bf16", ""),
        ("fp16s", ": the kernel is wrong, or the flow leaves the range of fp16s, which holds |f_i - w_i| up to 1.999"),
        ("fp16c", ": the kernel is wrong, or the flow leaves the range of fp16c, which holds |f_i - w_i| up to 2"),
    ],
)
def test_values_that_are_no_numbers_may_be_those_of_a_flow_beyond_a_narrow_format(name: str, also: str) -> None:
    assert str(state.not_finite(storage(name))) == f"the timed run left values that are not finite numbers{also}"


def test_what_is_wrong_alone_is_told_by_its_turn() -> None:
    pooled, turns = PooledDevice(FakeDevice("cuda", durations_s=lambda: 1e-2, weather=lambda: FAST)), list[int | None]()
    pooled.reset(1 << 24)
    runs = []
    for fault in ("right", "nan"):
        pooled.reset()
        program = renderer(CASE, config(fault, "cuda"))
        runs.append(Simulation(program, compiler(program), pooled))
    with pytest.raises(state.WrongResultError, match="not finite numbers"):
        interleaved.measure_interleaved(runs, PROTOCOL, turns.append)
    assert turns[-1] == 1


@pytest.mark.parametrize(("n", "rank"), [(2, 0), (5, 0), (6, 0), (9, 1), (15, 3), (30, 9), (100, 39)])
def test_interval_ranks_are_exact(n: int, rank: int) -> None:
    """One less than the smallest r with P(B <= r) > 0.025 for a binomial B of n fair coins."""
    assert interval_rank(n) == rank


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(2000):
        interval = median_interval(random.exponential(size=15).tolist())
        inside += interval.low <= np.log(2) <= interval.high
    assert 0.95 <= inside / 2000 <= 0.98


def test_a_pooled_device_hands_out_the_same_memory_again() -> None:
    pooled = PooledDevice(FakeDevice())
    pooled.reset(10 << 20)
    first = pooled.empty(1000, "float64")
    second = pooled.empty(1000, "float32")
    first[:], second[:] = 1, 2
    assert (first == 1).all()
    pooled.reset()
    again = pooled.empty(1000, "float64")
    assert np.shares_memory(first, again)
    assert not np.shares_memory(first, second)
    alone = pooled.empty(4 << 20, "float64")
    assert not np.shares_memory(alone, first)


def test_waiting_for_a_core_does_not_shorten_the_samples() -> None:
    """A look that had a tenth of a core took ten times too long: the sample is as long as on an idle machine."""
    looks = [sampling.Sample(1e-2, Conditions(cpu_share=0.1)), sampling.Sample(2e-2, Conditions(cpu_share=0.1))]
    assert sampling.undisturbed_s(looks) == pytest.approx(1e-3)
    assert sampling.undisturbed_s([sampling.Sample(1e-2, Conditions())]) == 1e-2


@pytest.mark.parametrize(("flags", "expected"), [([], True), ([True, True], True), ([True, False], False)])
def test_flags_are_looked_at_as_bytes(flags: list[bool], expected: bool) -> None:
    assert state.all_true(np.array(flags, bool)) is expected
    assert state.all_true(np.array([*flags] * 2, bool).reshape(2, -1).T) is expected
