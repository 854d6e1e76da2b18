"""The speed of a best.json, measured again: held within the noise, and causes if it does not hold."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import ceil
from typing import Any

import numpy as np
import pytest

from lbmtune.records import Conditions, Measurement
from lbmtune.records.best_json.document import Best, Expected, read_best
from lbmtune.records.comparison.statistics import repeat_spread
from lbmtune.records.regression.ratios import Verdict
from lbmtune.records.regression.remeasured import Here, remeasured
from tests.records.test_regression import LARGE, by_set, slower
from tests.records.test_repeats import DOZEN, measured
from tests.support.paths import RECORDED

ONE_STEP = ("d3q19-box-fp32", "d3q19-box-fp16s", "porous-fp32")
GPU_CONDITIONS = Conditions(sm_clock_hz=1.98e9, memory_clock_hz=2.6e9)
CPU_CONDITIONS = Conditions(cpu_share=1.0, memory_bytes_per_s=1e11, last_cache_bytes_per_s=4e11, work_per_s=2e9)


@cache
def recorded(device: str) -> Best:
    """Return a recorded best kernel, as if its spread between runs had been measured: 1 %."""
    folder = RECORDED / ("nvidia-h100/d3q19-box-fp32" if device == "cuda" else "zen5-2-cores/d3q19-box-output-fp32")
    best = read_best(folder / "best.json")
    conditions = GPU_CONDITIONS if device == "cuda" else CPU_CONDITIONS
    return replace(best, expected=replace(best.expected, between_runs=0.01, conditions=conditions))


def again(best: Best, factor: float, **conditions: Any) -> Measurement:
    """Return what is measured of a kernel here. factor: of the recorded speed."""
    expected = best.expected
    found = measured(*(factor * one for one in (expected.mlups, expected.ci_low_mlups, expected.ci_high_mlups)))
    samples = tuple(one / factor for one in found.samples_s)
    return replace(found, samples_s=samples, conditions=replace(expected.conditions, **conditions))


def here(best: Best, *, same_text: bool = True, **environment: Any) -> Here:
    return Here(environment=replace(best.environment, **environment), between_runs=None, same_text=same_text)


def twenty(factor: float, sets: tuple[str, ...]) -> list[Verdict]:
    """Return verdicts on kernels that were measured in two runs of an H100. factor: planted change of the second."""
    random, found, best = np.random.default_rng(3), [], recorded("cuda")
    for name in sets:
        pairs = by_set("nvidia-h100")[name]
        order = random.permutation(len(pairs)).tolist()
        between = repeat_spread([pairs[n].apart for n in order[:DOZEN]])
        for n in order[DOZEN : DOZEN + ceil(20 / len(sets))]:
            first, ratio = pairs[n].first, pairs[n].again_mlups / pairs[n].first.mlups
            speeds = {name: getattr(first, name) for name in ("mlups", "ci_low_mlups", "ci_high_mlups")}
            expected: Expected = replace(best.expected, between_runs=between, **speeds)
            file = replace(best, expected=expected)
            found.append(remeasured(file, here(file), slower(first, factor * ratio)).verdict)
    return found[:20]


def test_a_speed_that_is_measured_again_holds() -> None:
    assert twenty(1.0, LARGE) == [Verdict.SAME] * 20


def test_a_slower_machine_is_found() -> None:
    """A planted twentieth is found of 20 kernels in 20; runs of kernels that fuse steps lie further apart."""
    assert twenty(0.95, ONE_STEP) == [Verdict.SLOWER] * 20


CAUSES: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("cuda", {}, {"sm_clock_hz": 1.5e9}, "core clock 24.2 % lower: 1,980 MHz -> 1,500 MHz"),
    ("cuda", {}, {"memory_clock_hz": 2.0e9}, "memory clock 23.1 % lower: 2,600 MHz -> 2,000 MHz"),
    ("cuda", {}, {"throttle": ("power cap",)}, "the GPU reduced its clocks: power cap"),
    ("cuda", {}, {"others": ("python 17",)}, "other processes used the GPU: python 17"),
    ("cuda", {"device": "NVIDIA A100", "device_id": "GPU-1"}, {}, "another card: NVIDIA H100 80GB HBM3 -> NVIDIA A100"),
    ("cuda", {"device_id": "GPU-1"}, {}, "another card of the same kind: GPU-"),
    ("cuda", {"driver": "600"}, {}, "another driver: "),
    ("cuda", {"compiler": "NVRTC 14"}, {}, "another compiler: "),
    ("cuda", {"power_limit_w": 350.0}, {}, "another power limit: 700 W -> 350 W"),
    ("cpu", {"device_id": "AMD EPYC, 1 cores"}, {}, "another processor: AMD EPYC, 2 cores -> AMD EPYC, 1 cores"),
    ("cpu", {"packages": {"numba": "0.1"}}, {}, "another numba: "),
    ("cpu", {}, {"cpu_share": 0.4}, "other programs used the processor: 40% of it was left"),
    ("cpu", {}, {"memory_bytes_per_s": 5e10}, "main memory 50.0 % lower: 100 GB/s -> 50 GB/s"),
    ("cpu", {}, {"work_per_s": 1e9}, "arithmetic of a core 50.0 % lower: 2 G/s -> 1 G/s"),
]


@pytest.mark.parametrize(("device", "environment", "conditions", "said"), CAUSES, ids=[one[-1] for one in CAUSES])
def test_the_cause_is_told_if_it_can_be(
    device: str, environment: dict[str, Any], conditions: dict[str, Any], said: str
) -> None:
    best = recorded(device)
    kernel = again(best, 0.8, **conditions)
    found = remeasured(best, here(best, **environment), kernel)
    assert found.verdict is Verdict.SLOWER
    assert [cause for cause in found.causes if cause.startswith(said)], found.causes
    assert len(found.causes) == 1
    held = remeasured(best, here(best, **environment), again(best, 1.0, **conditions))
    assert (held.verdict, held.causes) == (Verdict.SAME, ()), "a speed that holds has no causes"


def test_without_a_change_no_cause_is_invented() -> None:
    best = recorded("cuda")
    assert remeasured(best, here(best), again(best, 0.8)).causes == ()
    higher = remeasured(best, here(best), again(best, 0.8, sm_clock_hz=2.2e9))
    assert higher.causes == (), "a higher clock makes nothing slower"
    disturbed = replace(again(best, 0.8), disturbed=True)
    assert remeasured(best, here(best), disturbed).causes == ("the device was not left alone: samples were disturbed",)


def test_a_kernel_of_another_text_is_told() -> None:
    best = recorded("cuda")
    (cause,) = remeasured(best, here(best, same_text=False), again(best, 0.8)).causes
    assert cause.startswith("the kernel has another text than that of lbmtune ")


def test_a_faster_device_does_not_hold_the_speed_either() -> None:
    best = recorded("cuda")
    crowded = replace(best, expected=replace(best.expected, disturbed=True))
    found = remeasured(crowded, here(best), again(best, 1.3, sm_clock_hz=2.4e9))
    assert found.verdict is Verdict.FASTER
    assert found.causes == (
        "the recorded samples were disturbed",
        "core clock 21.2 % higher: 1,980 MHz -> 2,400 MHz",
    )


def test_the_default_beside_it_tells_the_gain() -> None:
    best = recorded("cuda")
    kernel = replace(again(best, 1.0), samples_s=(1.0,) * 6)
    default = replace(again(best, 0.5), samples_s=(2.0,) * 6)
    found = remeasured(best, here(best), kernel, default, best.alternates[0].key)
    assert found.gain
    assert found.gain.median == 2.0
    assert found.was_default_mlups == best.alternates[0].mlups
    assert remeasured(best, here(best), kernel).gain is None


def test_without_a_spread_between_runs_there_is_no_verdict() -> None:
    """The wider of the spreads there and here counts."""
    best = recorded("cuda")
    unknown = replace(best, expected=replace(best.expected, between_runs=None))
    kernel, at = again(best, 0.8), here(best)
    assert remeasured(unknown, at, kernel).verdict is Verdict.UNKNOWN
    assert remeasured(unknown, replace(at, between_runs=0.01), kernel).verdict is Verdict.SLOWER
    assert remeasured(best, replace(at, between_runs=0.5), kernel).verdict is Verdict.SAME
