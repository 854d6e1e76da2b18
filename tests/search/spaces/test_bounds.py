"""Limits of a study: what is refused before it is measured, who may not win, and what is said if nothing fits."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.api import Study
from lbmtune.api.studies import run as studies
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.cli import main
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Outcome, Sustained
from lbmtune.records.best_json.document import read_best
from lbmtune.records.remarks import power_remark, too_much_power, unfinished
from lbmtune.records.spec import TimingProtocol
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.tables import case_table
from lbmtune.search.pareto import members
from lbmtune.search.spaces.bounds import allowed, check_any_of, legal_of
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
    """Kernels draw the more power the faster they are: a watt for each 100 MLUPS.

    in_vain: which sustained runs do not end in time.
    """

    def __init__(self, drawn: float | None = None, in_vain: Sequence[int] = (), backend: str = "cuda") -> None:
        super().__init__(backend)
        self.drawn, self.in_vain, self.ran = drawn, in_vain, list[str]()

    def sustained(self, configs, proven, seconds):
        answers = []
        for answer, config in zip(super().sustained(configs, proven, seconds), configs, strict=True):
            run = _run(self.drawn or fake_study.speed(config) / 100)
            out_of_time = replace(answer, outcome=Outcome.TIMED_OUT, reason="planted", sustained=None)
            answers.append(out_of_time if len(self.ran) in self.in_vain else replace(answer, sustained=run))
            self.ran.append(config.key)
        return answers


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


def test_finalists_whose_power_is_not_known_may_stay_within_it(tmp_path: Path) -> None:
    evaluator = Drawing(in_vain=(1,))
    with pytest.raises(NothingValidError, match="no finalist is known to stay within --max-power 10 W") as raised:
        study(tmp_path, evaluator, max_power_w=10.0)
    finals = {t.key: t for t in read_study(tmp_path).ranked if t.final}
    assert sorted(evaluator.ran) == sorted(finals), "one that has no result does not end the search for another"
    assert evaluator.ran[1] == next(key for key, trial in finals.items() if not trial.sustained)
    said = f"of {len(finals) - 1}, "
    assert said in str(raised.value)
    assert "the power of 1 more is not known; give it more time" in str(raised.value)
    assert "or more)" not in str(raised.value)


def test_a_slower_one_may_win_if_the_power_of_one_is_not_known(tmp_path: Path) -> None:
    free = study(tmp_path / "free", Drawing())
    slowest, *others = sorted((t for t in free.ranked if t.final), key=lambda t: t.mlups or 0)
    (config,) = _configs(slowest.key)
    evaluator = Drawing(in_vain=(1,))
    found = study(tmp_path / "bounded", evaluator, max_power_w=fake_study.speed(config) / 100)
    assert found.winner
    assert found.winner.key == slowest.key
    assert len(evaluator.ran) == len(others) + 1


@pytest.mark.parametrize(
    ("evaluator", "said"),
    [
        (Drawing(250.3), r"the best kernel draws 250.3 W, more than the 250 W that the study allows\.$"),
        (
            FakeEvaluator(),
            r"the power of the best kernel is not known, and the study allows 250 W; lbmtune study --resume goes on\.$",
        ),
    ],
)
def test_a_best_json_beyond_the_power_is_remarked_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, evaluator: FakeEvaluator, said: str
) -> None:
    with pytest.raises(NothingValidError):
        study(tmp_path, evaluator, max_power_w=250.0)
    written = Study(tmp_path).export()
    assert re.search(said, caplog.messages[-1])
    best = read_best(written)
    assert (best.limits["power_w"], best.finished) == (250.0, True)
    label = "Beyond the limits" if "draws" in said else "Unfinished"
    assert f"{label}: {caplog.messages[-1]}" in Study(tmp_path).report().read_text()


def test_a_study_that_is_stopped_says_if_the_power_of_its_best_is_not_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopped(Drawing):
        def sustained(self, configs, proven, seconds):
            raise KeyboardInterrupt

    fake_study.stand_in(monkeypatch, Stopped(backend="cpu"))
    monkeypatch.setattr(studies, "reports_power", lambda _: True)
    case = ["--set", "case.domain=64x64x64", "--trials", "8", "--output", str(tmp_path / "s")]
    with pytest.raises(SystemExit) as ended:
        main(["study", *case, "--max-power", "300"])
    assert ended.value.code == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2] == f"the best kernel so far is in {tmp_path / 's' / 'best.json'}"
    assert "the power of the best kernel is not known, and the study allows 300 W" in lines[-3]


def test_the_remark_on_a_member_is_of_that_member(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    record = study(tmp_path, Drawing(), beside=("footprint",))
    first = replace(record, trials=tuple(replace(t, final=None, verification=None) for t in record.trials))
    for member in members(first):
        assert f"kernel {member.key} was not verified on the whole domain" in unfinished(first, member)
    best, *_ = record.ranked
    proven = replace(first, trials=tuple(best if t.number == best.number else t for t in first.trials))
    assert unfinished(proven) == unfinished(record)


@pytest.mark.parametrize(
    ("drawn", "most", "said"),
    [
        (300.0, 300.0, ""),
        (None, None, ""),
        (900.0, None, ""),
        (300.4, 300.0, "it draws 300.4 W, more than the 300 W that the study allows"),
        (None, 300.0, "the power of it is not known, and the study allows 300 W"),
    ],
)
def test_the_remark_on_power(drawn: float | None, most: float | None, said: str) -> None:
    run = replace(_run(1.0), power_w=drawn)
    assert power_remark("it", run, most) == said
    assert drawn or power_remark("it", None, most) == said


def test_no_kernel_above_the_power_is_in_the_pareto_set(tmp_path: Path) -> None:
    with pytest.raises(NothingValidError):
        study(tmp_path, Drawing(), max_power_w=10.0, beside=("footprint",))
    record = read_study(tmp_path)
    assert any(trial.final for trial in record.ranked)
    assert members(record) == ()
    with pytest.raises(InputError, match=r"set of study made-up is empty, .* known to stay within --max-power 10 W"):
        Study(tmp_path).export(member=1)


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
    case = ["--set", "case.domain=64x64x64", "--trials", "8", "--output", str(tmp_path / "s")]
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
        main(["study", "--device", "cpu", "--max-power", "300", "--output", str(tmp_path / "s")])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "--max-power 300 is not supported for device cpu (leave it out)" in line
    assert not (tmp_path / "s").exists()
