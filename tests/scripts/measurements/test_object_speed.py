"""The speed of exported objects: which kernels are timed, and what is said of pairs."""

from __future__ import annotations

import pytest

from lbmtune.catalogue.families.rules import broken
from scripts.measurements.object_speed import LEAST_RATIO, Pairs, kinds
from tests.support.kernels.cpu_cases import LIMITS


@pytest.mark.parametrize("name", kinds(96, 2))
def test_a_kind_is_legal_and_has_the_threads_that_are_asked(name: str) -> None:
    case, config = kinds(96, 2)[name]
    assert broken(case, config, LIMITS) is None
    assert config.threads == 2
    assert ("fp64" in name) == (config.storage == "fp64")
    assert ("fp16s" in name) == (config.storage == "fp16s")


def test_a_ratio_is_that_of_the_speeds_of_pairs() -> None:
    """An object that takes longer is slower."""
    found = Pairs(2_000_000, object_s=[2.0, 4.0, 2.0], lbmtune_s=[1.0, 2.0, 1.5])
    assert found.ratios == [0.5, 0.5, 0.75]
    assert " ".join(found.row("slow").split()) == "slow 1.0 MLUPS, lbmtune 1.3, ratio 0.500 (0.500 to 0.750)"
    assert max(found.ratios) < LEAST_RATIO
