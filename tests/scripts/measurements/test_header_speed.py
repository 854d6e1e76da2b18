"""The speed of exported headers: which kernels are timed, and a program that runs on the host shim."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.measurements.header_speed import KINDS, Kind, built, chosen, small, speed
from tests.shim.device import COMPILER

FACTS = {
    "one step, fp32": ("direct", "fp32", 1),
    "one step, fp64": ("direct", "fp64", 1),
    "one step, fp16s": ("direct", "fp16s", 1),
    "in place": ("direct", "fp32", 1),
    "moments, 3 steps": ("temporal-blocking", "fp32", 3),
    "resident": ("persistent", "fp32", 1),
    "indirect": ("sparse", "fp32", 1),
    "cavity with flags": ("temporal-blocking", "fp32", None),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_what_it_says(kind: Kind) -> None:
    found = chosen(kind)
    family, storage, steps = FACTS[kind.name]
    assert (found.config.family, found.configuration["storage"]) == (family, storage)
    assert steps in (None, found.kernel.steps)
    buffers = {one.name for one in found.kernel.buffers}
    assert ("f1" not in buffers) == (kind.name in ("in place", "indirect"))
    assert ("flags" in buffers) == (kind.name == "cavity with flags")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_program_times_a_header(tmp_path: Path) -> None:
    found = chosen(KINDS[0])
    assert speed(built(found, tmp_path / "made", host=True), small(found), 1, 0, 1) > 0
