"""The comparison with lbmpy's kernels: whose configurations are raced, and which of them go on after the heats."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.flows import box
from scripts.measurements import peer_cpu
from tests.support.paths import ROOT

SCRIPT = ROOT / "scripts" / "measurements" / "peer_cpu.py"
LIMITS = Limits(cores=2, vector_bits=512, memory_bytes=1 << 40)


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return peer_cpu


def contender(script: ModuleType, name: str, kind: str, *mlups: float) -> Any:
    return script.Contender(name, kind, lambda: None, lambda _steps: None, list(mlups))


@pytest.mark.parametrize("precision", ["fp32", "fp64"])
def test_all_of_the_list_are_legal(script: ModuleType, precision: str) -> None:
    case = box("d3q19", "bgk", (256, 256, 256), script.RELAXATION_RATE)
    configs = script.our_configs(case, script.OURS, [], 2, precision)
    assert len(set(configs)) == len(configs) > 10
    assert [reason for config in configs if (reason := broken(case, config, LIMITS))] == []


def test_a_padded_stride_is_that_of_the_case(script: ModuleType) -> None:
    case = box("d3q19", "bgk", (64, 32, 16), script.RELAXATION_RATE)
    flat = script.strided(case, "scheme=aa,row_offset=1,padding=400,stride=padded")
    assert (flat["padding"], flat["stride"]) == (0, 66 * 32 * 16 + 400)
    assert script.strided(case, "scheme=aa,padding=400")["stride"] == 0


def test_the_fastest_of_each_kind_go_on(script: ModuleType) -> None:
    found = script.qualified(
        [
            contender(script, "slow", "in place", 5, 6),
            contender(script, "fast once", "in place", 1, 9),
            contender(script, "alone", "fp16s", 1, 1),
            contender(script, "steady", "in place", 7, 7),
        ],
        2,
    )
    assert [c.name for c in found] == ["fast once", "alone", "steady"]
    assert all(c.mlups == [] for c in found), "heats do not count"


def test_ratios_are_those_within_a_round(script: ModuleType) -> None:
    ours, theirs = contender(script, "a", "in place", 2, 30, 4), contender(script, "b", "in place", 1, 10, 4)
    assert script.ratio(ours, theirs) == "2.000 (1.000 to 3.000)"
