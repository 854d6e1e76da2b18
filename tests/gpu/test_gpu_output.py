"""Output every n steps on a GPU: right fields by a pass of their own, a file, and costs within reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import parse_config
from lbmtune.codegen.render import render
from lbmtune.measure.timing.output import measure_rates
from lbmtune.measure.workers.evaluate import Evaluator
from lbmtune.records import Outcome
from lbmtune.records.output import Output
from lbmtune.records.spec import TimingProtocol
from scripts.conformance import wrong_fields
from tests.runtime.test_macroscopic_pass import CASES, CUDA, samples

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("name", "text"), samples(CUDA))
def test_fields_are_those_that_the_host_sums_up(name: str, text: str) -> None:
    device = open_device("0")
    assert wrong_fields(render(CASES[name], parse_config(text)), device, compiler_for(device.environment)) is None


@pytest.mark.parametrize(("name", "text"), samples(CUDA))
def test_the_cost_of_output_is_measured(name: str, text: str, tmp_path: Path) -> None:
    # millions of steps: a force that no wall resists would let the fluid run away
    case = replace(CASES[name], force=tuple(1e-6 * component for component in CASES[name].force))
    with Evaluator(case, "0", TimingProtocol()) as evaluator:
        (trial,) = evaluator.output([parse_config(text)], Output(macroscopics=10, save=100, residual=100), tmp_path)
    assert trial.outcome is Outcome.OK, trial.reason
    assert [one.kind for one in trial.output] == ["macroscopics", "save", "residual"]


def test_rates_of_a_gpu_are_those_of_its_host(tmp_path: Path) -> None:
    rates = measure_rates(open_device("0"), 1 << 26, tmp_path)
    assert 1e9 < (rates.copy_bytes_per_s or 0) < 1e12
    assert rates.pass_bytes_per_s is None
