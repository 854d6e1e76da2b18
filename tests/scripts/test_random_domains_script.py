"""A few kernels of each family on random domains, and that a wrong kernel, or wrong data, is noticed."""

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen import describe_domain
from scripts import random_domains
from scripts.random_domains import REFUSED, RIGHT, WRONG, chosen, in_parallel, outcomes
from tests.shim.device import COMPILER

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
KERNELS = 20
"""Two of each family."""
SAMPLE = box("d2q9", "bgk", (64, 16, 1), 1.3), cuda.Direct(block=(32, 2, 1), cells_per_thread=2)


def test_a_kernel_is_right_on_a_domain_or_refused() -> None:
    found = [one for sample in chosen(("cuda", "cpu"), 1)[:KERNELS] for one in outcomes(sample, 1)]
    assert not [one for one in found if one.verdict == WRONG]
    assert len({one.family for one in found}) == KERNELS // 2
    assert {one.verdict for one in found} == {RIGHT, REFUSED}


@pytest.mark.slow
def test_many_more_are_right_or_refused() -> None:
    samples = chosen(("cuda", "cpu"), 2)[:400]
    found = [one for several in in_parallel(samples, 2, outcomes, 2) for one in several]
    assert not [one for one in found if one.verdict == WRONG]


def test_a_rule_that_is_missing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of two cells per thread on rows of odd length, which the rules would refuse."""
    monkeypatch.setattr(random_domains, "refusal", lambda *_: None)
    monkeypatch.setattr(random_domains, "refused_by", lambda *_: None)
    monkeypatch.setattr(random_domains, "domains", lambda *_: iter([(64, 16, 1), (63, 16, 1)] * 2))
    assert [one.verdict for one in outcomes(SAMPLE, 1)] == [RIGHT, WRONG] * 2


def test_data_that_say_something_else_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = describe_domain.domain_rules

    def without_multiples(*given: Any) -> Any:
        return replace(made(*given), multiple=(1, 1, 1))

    monkeypatch.setattr(random_domains, "domain_rules", without_multiples)
    monkeypatch.setattr(random_domains, "domains", lambda *_: iter([(63, 16, 1)] * 4))
    (said,) = {one.said for one in outcomes(SAMPLE, 1)}
    assert said == "by the rules: domain 63x16x1: nx=63 is not a multiple of cells_per_thread=2; by the file: None"
