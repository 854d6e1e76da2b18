"""Kernels that are measured again: which ones, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.measure.calibration import repeats

GIB = 1 << 30


def device(backend: str, **limits: Any) -> Any:
    return SimpleNamespace(environment=SimpleNamespace(backend=backend), limits=Limits(**limits))


def names(found: Any) -> list[str]:
    return [name for name, _ in repeats._programs(found)]


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_every_kernel_is_measured_on_every_domain(backend: str) -> None:
    found = names(device(backend, memory_bytes=80 * GIB))
    assert len(set(found)) == len(found) == 12
    assert names(device(backend)) == found  # the memory is not known
    for name, (case, program) in repeats._programs(device(backend)):
        assert str(case.domain) in name
        assert program.config.scheme in name


def test_what_does_not_fit_twice_is_left_out() -> None:
    """Another process may still hold as much."""
    all_of_them = dict(repeats._programs(device("cuda")))
    largest = max(footprint_bytes(case, program.config) for case, program in all_of_them.values())
    found = names(device("cuda", memory_bytes=int(1.9 * largest)))
    assert 0 < len(found) < 12
    assert not any("(256, 256, 256)" in name and "scheme=pull" in name for name in found)
    assert any("(256, 256, 256)" in name and "scheme=aa" in name for name in found)
    assert len(names(device("cuda", memory_bytes=int(2.5 * largest)))) == 12


def test_what_a_device_cannot_run_is_left_out() -> None:
    """A processor without vectors of the usual width has no such kernel."""
    assert len(names(device("cpu", vector_bits=64))) < 12 == len(names(device("cpu", vector_bits=512)))


@pytest.mark.parametrize(("seconds", "measured"), [(0.0, 12), (3.0, 3), (100.0, 1)])
@pytest.mark.parametrize(("cores", "processes"), [(8, 0), (16, 4)])
def test_a_visit_ends_in_time_and_has_at_least_one_speed(
    seconds: float, measured: int, cores: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, told = [0.0], []

    def measure(_: Any, __: Any) -> Any:
        now[0] += seconds
        return SimpleNamespace(mlups=100 + now[0])

    @contextmanager
    def precompiled(_: Any, programs: Any, asked: int) -> Iterator[Any]:
        told.append((len(list(programs)), asked))
        yield lambda program: program

    monkeypatch.setattr(repeats, "usable_cores", lambda: cores)
    monkeypatch.setattr(repeats, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(repeats, "compiler_for", lambda _: None)
    monkeypatch.setattr(repeats, "precompiled", precompiled)
    monkeypatch.setattr(repeats, "measure", measure)
    monkeypatch.setattr(repeats, "PooledDevice", lambda _: SimpleNamespace(reset=lambda *_: None))
    monkeypatch.setattr(repeats, "Simulation", lambda *_: None)
    assert len(repeats.measured_speeds(device("cpu"), lambda _: None)) == measured
    assert told == [(12, processes)]
