"""The predicted cost of output, as `predict` and `rank` print it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lbmtune.cli.app import app
from lbmtune.cli.format.description import machine_rows
from lbmtune.model.machine.toml import read_machine, write_machine
from lbmtune.records.output import OutputRates
from tests.support.paths import RECORDED

SHIPPED = read_machine(RECORDED / "nvidia-h200" / "machine.toml")
RATES = OutputRates(copy_bytes_per_s=5e10, file_bytes_per_s=1e9, residual_bytes_per_s=4e9, folder="/scratch")
ASKED = ["--study", "d3q19-box", "--set", "case.domain=100x100x100", "--set", "output.save=500"]


def said(*words: str) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def machine(tmp_path: Path) -> str:
    path = tmp_path / "machine.toml"
    write_machine(path, replace(SHIPPED, output=RATES))
    return str(path)


def test_the_cost_of_output_is_predicted_by_the_rates_of_a_machine(machine: str) -> None:
    found = said("predict", "scheme=push,storage=fp32", *ASKED, "--set", "output.residual=500", "--machine", machine)
    assert "output costs" in found
    assert "save every 500 steps: " in found
    assert "copy to the host 0.32 ms, file 16 ms)" in found  # 16 MB
    assert "residual every 500 steps: " in found


def test_json_has_the_parts_in_seconds(machine: str) -> None:
    facts = json.loads(said("predict", "scheme=push,storage=fp32", *ASKED, "--machine", machine, "--json"))
    save = facts["output_costs"]["save"]
    assert save["seconds"]["file"] == pytest.approx(0.016)
    assert 0 < save["share"] < 1


def test_a_ranking_tells_it_for_its_first_kernel(machine: str) -> None:
    where = ["--set", "case.domain=64x64x64", "--set", "output.macroscopics=10", "--machine", machine, "--compile", "0"]
    found = said("rank", "quick", *where)
    assert "output costs  macroscopics every 10 steps: " in found
    assert "% of the time (pass " in found


def test_a_machine_without_rates_says_so_and_without_output_nothing_is_said() -> None:
    found = said("predict", "scheme=push", *ASKED, "--machine", "h200")
    assert "not predicted: NVIDIA H200 has no rates of output" in " ".join(found.split())
    assert "output" not in said("predict", "scheme=push", *ASKED[:-2], "--machine", "h200")


def test_a_description_lists_its_rates() -> None:
    rows = dict(machine_rows("0", replace(SHIPPED, output=RATES)))
    assert str(rows["output"]).startswith("a file in /scratch, synchronised (fsync), at 1 GB/s, a residual at 4 GB/s")
    assert "output" not in dict(machine_rows("0", SHIPPED))
