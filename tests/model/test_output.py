"""The predicted cost of output: bytes over measured rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.output import fields_bytes, output_parts, pass_bytes, reading
from lbmtune.records.output import OutputRates

CASE = box("d3q19", "bgk", (100, 100, 100))
RATES = OutputRates(copy_bytes_per_s=5e10, file_bytes_per_s=1e9, residual_bytes_per_s=1e10)


def test_parts_of_a_gpu() -> None:
    config = parse_config("storage=fp32,compute=fp64")
    assert fields_bytes(CASE, config) == 32_000_000
    assert pass_bytes(CASE, config) == 1e6 * (19 * 4 + 4 * 8)
    passes = 1.08e8 / 2e12
    assert output_parts(CASE, config, "macroscopics", 2e12, RATES, 1.0) == {"pass": passes}
    saved = output_parts(CASE, config, "save", 2e12, RATES, 1.0)
    assert saved == pytest.approx({"pass": passes, "copy to the host": 0.00064, "file": 0.032})


@pytest.mark.parametrize(("between_s", "seen_s"), [(1.0, 0.0), (0.001, 0.0014)])
def test_a_gpu_hides_the_residual_behind_its_steps(between_s: float, seen_s: float) -> None:
    found = output_parts(CASE, parse_config("storage=fp64,compute=fp64"), "residual", 2e12, RATES, between_s)
    assert found["residual"] == pytest.approx(seen_s)


def test_a_cpu_copies_nothing_hides_nothing_and_fetches_what_it_writes() -> None:
    config = parse_config("storage=fp32,compute=fp32", "cpu")
    rates = replace(RATES, copy_bytes_per_s=None, pass_bytes_per_s=1e10)
    found = output_parts(CASE, config, "residual", 1e11, rates, 1.0)
    assert found == pytest.approx({"pass": 1e6 * (19 * 4 + 2 * 16) / 1e10, "residual": 0.0012})
    slow = output_parts(CASE, config, "residual", 1e10, rates, 1.0)
    assert slow["residual"] == pytest.approx(0.0024), "it reads the velocities now and before"


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("layout=soa", "rows"),
        ("layout=aosoa", "groups"),
        ("layout=aos,vector_bits=0", "cells"),
        ("family=sparse,layout=soa", "list"),
        ("family=wavefront", "rows"),
    ],
)
def test_a_pass_of_a_cpu_takes_as_long_as_its_bytes_or_its_values(text: str, seen: str) -> None:
    config = parse_config(f"{text},storage=fp32,compute=fp32,threads=2", "cpu")
    assert reading(CASE, config) == seen
    slow = {seen: 1e9} if seen != "rows" else {}
    rates = replace(RATES, copy_bytes_per_s=None, pass_bytes_per_s=3e10, pass_values_per_s=slow, threads=4)
    (found,) = output_parts(CASE, config, "macroscopics", 1e11, rates, 1.0).values()
    assert found == pytest.approx(19e6 / 0.5e9 if slow else 108e6 / 3e10)
    (found,) = output_parts(CASE, config, "macroscopics", 1e11, replace(rates, pass_values_per_s={}), 1.0).values()
    assert found == pytest.approx(pass_bytes(CASE, config) / 3e10)


def test_few_threads_are_as_fast_as_each_of_them() -> None:
    config = parse_config("storage=fp32,compute=fp32,threads=1", "cpu")
    rates = replace(RATES, copy_bytes_per_s=None, pass_bytes_per_s=4e10, thread_pass_bytes_per_s=2e10, threads=4)
    assert output_parts(CASE, config, "macroscopics", 1e11, rates, 1.0)["pass"] == pytest.approx(108e6 / 2e10)
    two = parse_config("storage=fp32,compute=fp32,threads=3", "cpu")
    assert output_parts(CASE, two, "macroscopics", 1e11, rates, 1.0)["pass"] == pytest.approx(108e6 / 4e10)


def test_a_residual_copies_velocities_alone() -> None:
    parts = output_parts(CASE, parse_config("storage=fp64,compute=fp64"), "residual", 2e12, RATES, 1.0)
    assert parts["copy to the host"] == pytest.approx(24e6 / 5e10)


def test_lists_moments_and_solid_cells() -> None:
    rocks = replace(CASE, flow="porous", geometry="blocks:fraction=0.5")
    listed = parse_config("family=sparse,storage=fp32,compute=fp32")
    assert pass_bytes(rocks, listed) == rocks.fluid_sites * (19 * (4 + 8) + 16)
    assert pass_bytes(rocks, parse_config("flags=memory,storage=fp32,compute=fp32")) == 1e6 * (19 * 4 + 4 + 16)
    moments = parse_config("family=temporal-blocking,representation=moments,storage=fp32,compute=fp32")
    assert pass_bytes(replace(CASE, collision="regularised"), moments) == 1e6 * (4 * 4 + 16)
