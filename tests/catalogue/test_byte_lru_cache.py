"""A cache keeps results between trials, up to its bytes."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.protocol import OutOfMemoryError
from lbmtune.catalogue.byte_lru_cache import forget_all, remembered
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.state import fill_random

made: list[int] = []


@remembered(1000)
def zeros(size: int, *, step: int = 0) -> Any:
    made.append(size + step)
    return np.zeros(size, np.uint8)


@pytest.fixture(autouse=True)
def _nothing_made() -> None:
    forget_all()
    made.clear()


def test_a_result_is_worked_out_once() -> None:
    assert zeros(10) is zeros(10)
    assert zeros(10, step=1) is not zeros(10)
    assert made == [10, 11]


def test_many_small_results_do_not_displace_a_large_one() -> None:
    large = zeros(900)
    for step in range(50):
        zeros(1, step=step)
    assert zeros(900) is large


def test_what_was_not_asked_for_longest_is_forgotten_first() -> None:
    zeros(400), zeros(500), zeros(400), zeros(300)
    made.clear()
    zeros(400), zeros(300)
    assert made == []
    zeros(500)
    assert made == [500]


def test_the_last_result_is_kept_however_large() -> None:
    assert zeros(5000) is zeros(5000)
    assert zeros(10) is zeros(10)
    assert made == [5000, 10]


class Small:
    """Has memory only when nothing is remembered."""

    asked = 0

    def empty(self, elements: int, dtype: str, placing: object = None) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise OutOfMemoryError("the device is full")
        return np.empty(elements, dtype)


def test_memory_is_asked_for_again_when_what_is_remembered_has_gone() -> None:
    first = zeros(10)
    PooledDevice(Small()).reset(64)  # type: ignore[arg-type]
    assert zeros(10) is not first


def test_noise_is_the_same_each_time() -> None:
    arrays = [np.zeros(1 << 21, np.float32) for _ in range(2)]
    for array in arrays:
        fill_random(array, 0.1, np)
    assert (arrays[0] == arrays[1]).all()
    assert 0.05 <= arrays[0].min() < arrays[0].max() <= 0.15


def test_each_gpu_has_arrays_of_its_own() -> None:
    """Those of another one are slow to read."""
    current = [0]
    gpus = ModuleType("gpus")
    gpus.cuda = SimpleNamespace(runtime=SimpleNamespace(getDevice=lambda: current[0]))  # type: ignore[attr-defined]
    on: list[tuple[int, str]] = []

    @remembered(1 << 20)
    def empty(n: int, xp: ModuleType) -> Any:
        on.append((current[0], xp.__name__))
        return np.zeros(n)

    for device in (0, 1, 0, 1):
        current[0] = device
        empty(3, gpus)
        empty(3, np)
    assert on == [(0, "gpus"), (0, "numpy"), (1, "gpus")]
