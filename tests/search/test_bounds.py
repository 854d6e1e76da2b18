"""Limits of a study: what is refused before it is measured, who may not win, and what is said if nothing fits."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api import studies
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.cli import main
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Sustained
from lbmtune.records.remarks import too_much_power
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord, TimingProtocol
from lbmtune.report.study.tables import case_table
from lbmtune.search.bounds import allowed, check_any_of, legal_of
from lbmtune.search.pareto import members
from lbmtune.search.study import run_study
from tests.support.studies import fake_study
from tests.support.studies.fake_study import CASE, LIMITS, FakeEvaluator, header, search, space_of, spec

SIZES = sorted({footprint_bytes(CASE, config) for config in space_of(spec()).configs})


def test_configurations_above_the_footprint_are_illegal_with_the_reason() -> None:
    most = SIZES[len(SIZES) // 2]
    found = legal_of(spec(max_footprint_bytes=most), "cuda", LIMITS)
    assert set(found.configs) == {c for c in space_of(spec()).configs if footprint_bytes(CASE, c) <= most}
    (reason,) = (said for said in found.illegal if "the study allows" in said)
    assert re.search(r"domain 64x64x64 needs .* in fp32 \w+; the study allows [\d.]+ MiB", reason)
    assert found.illegal[reason] >= len(space_of(spec()).configs) - len(found.configs)


def test_the_least_footprint_that_is_said_is_enough() -> None:
    small = spec(max_footprint_bytes=SIZES[0] - 1)
    for find in (legal_of, check_any_of):
        with pytest.raises(InputError, match=r"--max-footprint \d+MiB is not supported for made-up \(use") as raised:
            find(small, "cuda", LIMITS)
    least = re.search(r"use (\d+)MiB or more\): that is the footprint of (\S+), the smallest of", str(raised.value))
    assert least
    found = legal_of(spec(max_footprint_bytes=int(least[1]) << 20), "cuda", LIMITS).configs
    assert least[2] in {config.key for config in found}


def test_a_device_with_less_memory_than_the_study_allows_decides() -> None:
    assert allowed(LIMITS, spec(max_footprint_bytes=LIMITS.memory_bytes)) == LIMITS
    assert allowed(LIMITS, spec()) == LIMITS
    bounded = allowed(LIMITS, spec(max_footprint_bytes=1 << 30))
    assert (bounded.memory_bytes, bounded.memory_asked) == (1 << 30, True)


class Drawing(FakeEvaluator):
    """Kernels draw the more power the faster they are: a watt for each 100 MLUPS."""

    def __init__(self, drawn: float | None = None) -> None:
        super().__init__()
        self.drawn, self.ran = drawn, list[str]()

    def sustained(self, configs, proven):
        self.ran += [config.key for config in configs]
        answers = super().sustained(configs, proven)
        return [
            replace(answer, sustained=_run(self.drawn or fake_study.speed(config) / 100))
            for answer, config in zip(answers, configs, strict=True)
        ]


def _run(watts: float) -> Sustained:
    return Sustained(
        mlups=1.0, seconds=2.0, steps=10, sites=CASE.sites, slices_s=(0.2,), power_w=watts, energy_j=2.0 * watts
    )


def study(folder: Path, evaluator: FakeEvaluator, **changes: object) -> StudyRecord:
    asked = spec(protocol=TimingProtocol(finalists=6), **changes)
    return run_study(replace(search(folder, evaluator), sustain=evaluator.sustained), header(asked), space_of(asked))


def test_the_fastest_that_stays_within_the_power_wins(tmp_path: Path) -> None:
    free = study(tmp_path / "free", Drawing())
    by_speed = sorted((t for t in free.ranked if t.final), key=lambda t: -(t.mlups or 0))
    powers = [fake_study.speed(config) / 100 for t in by_speed for config in _configs(t.key)]
    most = (powers[1] + powers[2]) / 2
    evaluator = Drawing()
    found = study(tmp_path / "bounded", evaluator, max_power_w=most)
    assert found.winner
    assert found.winner.key == by_speed[2].key
    assert evaluator.ran[:3] == [t.key for t in by_speed[:3]]
    said = too_much_power(found)
    assert all(t.key in said for t in by_speed[:2])
    assert said.endswith(f"more than the {most:g} W that the study allows")
    assert too_much_power(free) == ""
    assert dict(case_table(found))["power allowed"] == f"{most:g} W, mean of a sustained run"


def _configs(key: str):
    return [config for config in space_of(spec()).configs if config.key == key]


def test_if_all_finalists_draw_too_much_the_least_is_said(tmp_path: Path) -> None:
    evaluator = Drawing()
    with pytest.raises(
        NothingValidError, match=r"no finalist stays within --max-power 10 W \(use (\d+) or more\)"
    ) as raised:
        study(tmp_path, evaluator, max_power_w=10.0)
    record = read_study(tmp_path)
    assert record.winner is None
    assert sorted(evaluator.ran) == sorted(t.key for t in record.ranked if t.final)
    least = min((t for t in record.ranked if t.sustained), key=lambda t: t.sustained.power_w)
    assert f"{least.key} draws the least of {len(evaluator.ran)}" in str(raised.value)


def test_no_kernel_above_the_power_is_in_the_pareto_set(tmp_path: Path) -> None:
    with pytest.raises(NothingValidError):
        study(tmp_path, Drawing(), max_power_w=10.0, beside=("footprint",))
    record = read_study(tmp_path)
    assert any(trial.final for trial in record.ranked)
    assert members(record) == ()


def test_a_power_that_is_not_known_does_not_win(tmp_path: Path) -> None:
    asked = spec(max_power_w=300.0)
    with pytest.raises(NothingValidError, match="the power of no finalist is known"):
        run_study(search(tmp_path, FakeEvaluator()), header(asked), space_of(asked))


def test_limits_are_options_and_stand_in_what_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_study.stand_in(monkeypatch, Drawing(drawn=250.0))
    monkeypatch.setattr(studies, "reports_power", lambda _: True)
    most = SIZES[len(SIZES) // 2]
    case = ["--set", "case.domain=64x64x64", "--trials", "8", "--out", str(tmp_path / "s")]
    with pytest.raises(SystemExit) as ended:
        main(["study", *case, "--max-footprint", str(most), "--max-power", "300", "--json"])
    assert ended.value.code == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["limits"] == {"footprint_bytes": most, "power_w": 300.0}
    best = json.loads((tmp_path / "s" / "best.json").read_text())
    assert best["limits"] == facts["limits"]
    assert best["expected"]["footprint_bytes"] <= most
    assert "that the study allows" not in facts["over_the_power"]
    assert "300 W, mean of a sustained run" in (tmp_path / "s" / "report.html").read_text()


def test_a_device_without_a_counter_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_study.stand_in(monkeypatch)
    monkeypatch.setattr(studies, "reports_power", lambda _: False)
    with pytest.raises(SystemExit) as ended:
        main(["study", "--device", "cpu", "--max-power", "300", "--out", str(tmp_path / "s")])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--max-power 300 is not supported for device cpu (leave it out)" in line
    assert not (tmp_path / "s").exists()
