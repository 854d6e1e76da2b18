"""The script that repeats a study: what it plants, and what it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.catalogue.families.rules import Limits
from lbmtune.search.spaces.space import legal_set
from scripts.measurements.repeated import counted, faster, slower, study_of
from tests.records.test_regression import TWENTY, study
from tests.records.test_remeasured import recorded


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_a_study_has_ten_kernels(backend: str) -> None:
    spec = study_of((96, 96, 96))
    table = {name: tuple(2 if value == "all" else value for value in one) for name, one in spec.axes[backend].items()}
    limits = Limits(cores=2, physical_cores=2, vector_bits=256, memory_bytes=2**36)
    assert len(legal_set(spec.case, backend, [table], limits).configs) == spec.budget.trials == 10


def test_counts_are_those_of_regressions() -> None:
    first = study(TWENTY, (0.002, -0.002) * 6)
    assert counted([first, first, slower(first, 0.8), first], 0.95) == (1, 3)
    assert counted([first, first], 1.0) == (0, 0)


def test_a_planted_factor_changes_all_speeds() -> None:
    first = study(TWENTY)
    before, after = first.ranked[0].best_measurement, slower(first, 0.5).ranked[0].best_measurement
    assert after.mlups == 0.5 * before.mlups
    assert after.samples_s[0] == 2 * before.samples_s[0]
    best = recorded("cpu")
    assert faster(best, 0.5).expected.mlups == 2 * best.expected.mlups
    assert replace(faster(best, 0.5), expected=best.expected) == best
