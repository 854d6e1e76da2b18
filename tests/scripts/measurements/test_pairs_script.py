"""The recorder of pairs: every kernel of a set is measured in each visit, and the first line names the origin."""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from scripts.measurements import pairs
from tests.support.paths import RECORDED
from tests.support.studies.fake_study import FakeEvaluator

SET = RECORDED / "nvidia-h200" / "d3q19-small-64"


class OfCase(FakeEvaluator):
    """Keeps the domains that were measured."""

    domains: list[tuple[int, int, int]] = []

    def __init__(self, case: Case, device: str, _: object) -> None:
        super().__init__()
        assert device == "0"
        self.domains.append(case.domain)

    @property
    def in_flight(self) -> int:
        return len(self._queue)


def test_each_visit_measures_the_same_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "Evaluator", OfCase)
    monkeypatch.setattr(OfCase, "domains", [])
    out = tmp_path / "new" / "pairs.jsonl.gz"
    monkeypatch.setattr(sys, "argv", ["pairs", str(out), f"{SET}:6", f"{SET}:4:32x32x16"])
    pairs.main()
    first, *rows = map(json.loads, gzip.decompress(out.read_bytes()).splitlines())
    assert first["device"] == "0"
    assert first["command"] == sys.argv[1:]
    assert OfCase.domains == [(64, 64, 64), (32, 32, 16)] * 2
    seen = [{(row["set"], row["key"]) for row in rows if row["visit"] == visit} for visit in (0, 1)]
    assert seen[0] == seen[1]
    assert 6 <= len(seen[0]) <= 10
    assert all(row["low"] < row["mlups"] < row["high"] and row["samples_s"] for row in rows)


@pytest.mark.parametrize("count", [1, 7, 40])
def test_half_of_the_kernels_are_among_the_fastest(count: int) -> None:
    record = pairs.read_study(SET)
    found: Sequence[KernelConfig] = pairs.chosen(record, count)
    keys = [config.key for config in found]
    assert len(set(keys)) == len(keys) == count
    third = [trial.key for trial in record.ranked[: max(count, len(record.ranked) // 3)]]
    assert set(keys[: count // 2]) <= set(third)
