"""The predicted cost of output: bytes over measured rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.output import fields_bytes, output_parts, pass_bytes
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


def test_lists_moments_and_solid_cells() -> None:
    rocks = replace(CASE, flow="porous", geometry="blocks:fraction=0.5")
    listed = parse_config("family=sparse,storage=fp32,compute=fp32")
    assert pass_bytes(rocks, listed) == rocks.fluid_sites * (19 * (4 + 8) + 16)
    assert pass_bytes(rocks, parse_config("flags=memory,storage=fp32,compute=fp32")) == 1e6 * (19 * 4 + 4 + 16)
    moments = parse_config("family=temporal-blocking,representation=moments,storage=fp32,compute=fp32")
    assert pass_bytes(replace(CASE, collision="regularised"), moments) == 1e6 * (4 * 4 + 16)
