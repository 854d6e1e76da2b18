"""The model held against recorded sets: what the report says of made-up figures, and that it reads a real set."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune import __version__
from lbmtune.api.machines.shipped import named_machine
from lbmtune.catalogue.config import cuda, from_flat
from lbmtune.catalogue.problem.flows import box
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.predict import predict
from lbmtune.records.store import read_study
from lbmtune.report import varied
from lbmtune.units import format_mlups
from scripts.recorded import against_published
from scripts.recorded.model_page import (
    Judged,
    bars,
    by_card,
    by_look,
    by_scheme,
    by_set,
    by_tenth,
    figure,
    judgement,
    model,
    pooled,
    printed,
    with_ablation,
    write_page,
    write_tables,
)
from tests.support.paths import ROOT
from tests.support.script_module import load

RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"


def one(number: int, ratio: float, scheme: str = "pull", many: bool = False) -> Judged:
    """A kernel of 100 * number MLUPS, predicted `ratio` times as fast."""
    return Judged(
        set="card/box",
        scheme=scheme,
        many=many,
        key=f"{number:012d}",
        label=f"number {number}",
        measured=100.0 * number,
        predicted=100.0 * number * ratio,
        limit="memory",
    )


def test_errors_are_relative_to_what_was_measured() -> None:
    judged = [one(n, 1.5) for n in range(1, 10)] + [one(10, 0.75, "aa")]
    row = by_set(judged).loc["card/box"]
    assert row["n"] == 10
    assert row["median"] == pytest.approx(0.5)
    assert by_scheme(judged).loc["card/box"].to_dict() == pytest.approx({"aa": 0.25, "pull": 0.5})
    assert by_tenth(judged).loc["card/box"].tolist() == pytest.approx([0.5] * 9 + [0.25])


def test_ranks_and_the_first_ten() -> None:
    right = [one(n, 1.1) for n in range(1, 31)]
    assert by_set(right).loc["card/box", ["rank", "first 10"]].tolist() == pytest.approx([1, 1])
    wrong = [one(n, 1 / n**2) for n in range(1, 31)]
    assert by_set(wrong).loc["card/box", ["rank", "first 10"]].tolist() == pytest.approx([-1, 1 / 3])


def test_kernels_of_several_steps_have_a_row_of_their_own() -> None:
    table = by_set([one(1, 1.0), one(2, 2.0, many=True)])
    assert table.loc["card/box, one step", "median"] == 0
    assert table.loc["card/box, several steps", "median"] == 1


def test_ablation_names_what_changes() -> None:
    whole, without = by_set([one(n, 1.1) for n in range(1, 4)]), by_set([one(n, 1.3) for n in range(1, 4)])
    text = with_ablation(whole, {"halos": without, "nothing": whole})
    assert "halos" in text
    assert "0.200" in text
    assert "nothing" not in text


def test_parts_of_a_set_can_be_left_out_of_the_table_of_terms() -> None:
    judged = [one(1, 1.0), one(2, 1.0), one(3, 2.0, many=True), one(4, 2.0, many=True)]
    whole, without = by_set(judged), by_set([replace(each, predicted=3 * each.predicted) for each in judged])
    assert "several steps" in with_ablation(whole, {"halos": without})
    assert "several steps" not in with_ablation(whole, {"halos": without}, parts=False)


def test_tables_are_written_between_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("before\n<!-- sets -->\nstale\n<!-- /sets -->\nafter\n")
    write_tables(path, {"sets": by_card([one(n, 1.5) for n in range(1, 31)])})
    text = path.read_text()
    assert text.startswith("before\n<!-- sets -->\n\n    ")
    assert text.endswith("\n\n<!-- /sets -->\nafter\n")
    assert "stale" not in text
    assert "2 of 8 bars hold" in text
    assert "card, one step, tenth 10: 2,800 to 3,000 MLUPS" in text
    assert "card/box: median error, one step 0.500 for 0.07" in text
    write_tables(path, {"sets": by_card([one(n, 1.5) for n in range(1, 31)])})
    assert path.read_text() == text
    with pytest.raises(ValueError, match="no place for the table terms"):
        write_tables(path, {"terms": ""})


def test_the_document_has_a_place_for_each_table_and_every_set() -> None:
    text = (ROOT / "docs" / "lab" / "model-accuracy.md").read_text()
    for name in ("sets", "terms"):
        assert f"<!-- {name} -->\n" in text
    written = text.partition("<!-- sets -->")[2].partition("<!-- /sets -->")[0]
    kept = sorted(folder.parent.name for folder in RECORDED.glob("*/study.json"))
    assert [name for name in kept if f"nvidia-h200/{name} " not in written] == []
    assert "nvidia-h100, several steps " in written


@pytest.mark.parametrize("kind", ["one step", "several steps"])
def test_what_the_document_says_first_is_what_its_table_says(kind: str) -> None:
    """In whole per cents, which a reader can keep in mind."""
    text = (ROOT / "docs" / "lab" / "model-accuracy.md").read_text()
    first = re.search(rf"^\| {kind} per launch \| (\d+) % \| (\d+) % \|$", text, re.MULTILINE)
    row = re.search(rf"^    nvidia-h200, {kind} +\d+ +([\d.]+) ([\d.]+)$", text, re.MULTILINE)
    assert first
    assert row
    assert [int(one) for one in first.groups()] == [round(100 * float(one)) for one in row.groups()]


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    write_page(tmp_path / "folder" / "page.html", [one(n, 1.1) for n in range(1, 4)])
    text = (tmp_path / "folder" / "page.html").read_text()
    assert "number 2" in text
    assert 'src="http' not in text
    assert "card/box" in printed([one(1, 1.0), one(2, 1.1)])


@pytest.fixture
def one_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """A published speed in place of all of them, which have tests of their own."""
    row = against_published.Row(
        document="tried",
        variant="pull",
        device="V100",
        where="the highest",
        domain="128x128x128",
        storage="fp64",
        published=2300.0,
        predicted=2200.0,
        share=0.4,
    )
    monkeypatch.setattr(against_published, "rows", lambda: [row])


def test_the_script_is_a_program(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "recorded" / "model_report.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, f"no recorded set below {tmp_path}\n", "")


@pytest.mark.usefixtures("one_published")
def test_the_script_judges_a_recorded_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "card"
    shutil.copytree(RECORDED / "d3q19-small-32", folder / "small")
    shutil.copy(RECORDED / "machine.toml", folder)
    assert SCRIPT.main([str(folder), "--out", str(tmp_path / "page.html")]) == 0
    told = capsys.readouterr().out
    assert "card/small" in told
    assert "without a term" in told
    assert "hold" in told
    assert "128x128x128" in told
    assert (tmp_path / "page.html").stat().st_size > 1 << 20


def test_a_set_is_held_to_its_bars() -> None:
    """An eighth of the kernels is half as fast as predicted: the median holds, the 90th percentile does not."""
    judged = [one(n, 1.05 if n % 8 else 2.0) for n in range(1, 101)]
    found = {bar.figure: bar for bar in bars(judged)}
    assert {figure: bar.holds for figure, bar in found.items()} == {
        "median error, one step": True,
        "90 % error, one step": False,
        "rank": True,
        "best of the first 10": True,
    }
    assert found["90 % error, one step"].value == pytest.approx(1.0)
    assert "does not hold" in judgement(judged)
    assert "5 of 8 hold" in judgement(judged)


def test_all_large_domains_are_judged_together_besides() -> None:
    """A set of few kernels misses its bars, and many right ones beside it hold them; small domains do not count."""
    wrong = [replace(one(n, 1.5), set="card/wrong") for n in range(1, 6)]
    right = [one(n, 1.01, scheme="aa") for n in range(1, 101)]
    small = [replace(one(n, 3.0), set="card/small", sites=64**3) for n in range(1, 101)]
    found = {(bar.set, bar.figure): bar.holds for bar in bars(wrong + right + small)}
    assert found["card, all", "90 % error, one step"]
    assert found["card, aa", "90 % error, one step"]
    assert not found["card/wrong", "90 % error, one step"]
    assert ("card, pull", "90 % error, one step") not in found, "of five kernels it is that of one"
    table = pooled(wrong + right + small)
    assert list(table.n[:3]) == [105, 100, 5]
    assert len(table) == 13
    assert table.n[3:].sum() == 105
    assert table["90 %"]["card, one step, pull"] == pytest.approx(0.5)
    assert table["median"]["card, one step, aa"] == pytest.approx(0.01)
    assert pooled(small).empty
    assert "card/small" in by_card(small)


def test_schemes_and_tenths_are_held_to_bars_by_themselves_and_cards_apart() -> None:
    """Twenty slow kernels are wrong, which nine tenths of all do not show."""
    fast = [one(n, 1.01) for n in range(101, 301)]
    slow = [one(n, 1.5, scheme="swap") for n in range(1, 21)]
    other = [replace(one(n, 3.0), set="older/box") for n in range(1, 31)]
    found = {bar.set: bar for bar in bars(fast + slow + other) if bar.figure == "90 % error, one step"}
    assert found["card, all"].holds
    assert found["card, pull"].holds
    assert found["card, swap"].value == pytest.approx(0.5)
    tenths = {name: bar.holds for name, bar in found.items() if name.startswith("card, tenth")}
    assert list(tenths.values()) == [False] + [True] * 9
    assert next(iter(tenths)) == "card, tenth 1: 100 to 10,200 MLUPS"
    assert not found["older, all"].holds
    assert list(pooled(fast + slow + other).loc[["card, one step", "older, one step"], "n"]) == [220, 30]


def test_tenths_are_those_of_what_was_measured() -> None:
    """The slowest are predicted to be the fastest."""
    judged = [one(n, 1.01) for n in range(21, 201)] + [one(n, 1000.0) for n in range(1, 21)]
    held = {bar.set: bar.holds for bar in bars(judged) if bar.figure == "median error, one step"}
    assert [holds for name, holds in held.items() if name.startswith("card, tenth")] == [False] + [True] * 9
    assert pooled(judged)["median"]["card, one step, tenth 1: 100 to 2,000 MLUPS"] == pytest.approx(999)


def test_a_folder_may_hold_sets_of_cpus_alone() -> None:
    found = by_card([replace(one(n, 1.1), backend="cpu") for n in (10, 20)])
    assert found.startswith(f"predictions of {model()}\n\n2 of 2 bars hold")


def test_errors_are_told_of_all_trials_and_of_those_that_were_dismissed() -> None:
    judged = [one(n, 1.1) for n in range(1, 11)] + [replace(one(n, 1.5), dismissed=True) for n in range(1, 6)]
    table = by_look([*judged, replace(one(1, 9.0), backend="cpu")])
    assert table.n.to_dict() == {"all": 15, "measured to the end": 10, "dismissed after a first look": 5}
    assert table["median"].tolist() == pytest.approx([0.1, 0.1, 0.5])
    assert "dismissed after a first look" in by_card(judged)
    assert "dismissed after a first look" in printed(judged)
    assert re.match(rf"predictions of lbmtune {re.escape(__version__)}, \d{{4}}-\d\d-\d\d\n", printed(judged))


def test_bars_go_by_kind_size_and_device() -> None:
    many = bars([replace(one(n, 1.2), many=True) for n in (10, 20)])
    assert [(bar.set, bar.bound, bar.holds) for bar in many][:4] == [
        ("card, all", 0.12, False),
        ("card, all", 0.25, True),
        ("card/box", 0.12, False),
        ("card/box", 0.25, True),
    ]
    (small,) = bars([replace(one(n, 1.2), sites=64**3) for n in (10, 20)])
    assert (small.bound, small.holds) == (0.20, True)
    both = bars([replace(one(n, 1.2), sites=128**3) for n in (10, 20)])
    assert [(bar.set, bar.bound, bar.holds) for bar in both] == [
        *(("card, all", 0.07, False), ("card, all", 0.18, False)),
        *(("card/box", 0.20, True), ("card/box", 0.07, False), ("card/box", 0.18, False)),
        *(("card/box", 0.9, True), ("card/box", 0.98, True)),
    ], "128^3 is the largest small domain and the smallest large one"
    cpu = bars([replace(one(n, 1.2), backend="cpu") for n in (10, 20)])
    assert [(bar.bound, bar.holds) for bar in cpu] == [(0.15, False), (0.95, True)]
    alike = bars([replace(one(n, 1.0), measured=100.0 + n) for n in range(5)])
    assert "rank" not in {bar.figure for bar in alike}


def test_an_order_is_asked_for_where_most_of_a_set_lies_apart() -> None:
    """Not because of one kernel that is slow and one that is fast."""
    alike = [replace(one(n, 1.0), measured=100.0 + n / 10) for n in range(50)]
    ends = [replace(one(n, 1.0), measured=speed) for n, speed in ((50, 1.0), (51, 1000.0))]
    assert "rank" not in {bar.figure for bar in bars(alike + ends)}


def test_of_what_is_expected_to_be_as_fast_the_first_keys_come_first() -> None:
    judged = [replace(one(n, 1.0), predicted=5000.0) for n in range(1, 31)]
    assert by_set(judged).loc["card/box", "first 10"] == pytest.approx(10 / 30)


def test_a_change_has_the_sign_of_what_is_lost_and_may_be_small() -> None:
    whole, worse = by_set([one(n, 1.1) for n in range(1, 4)]), by_set([one(n, 1.101) for n in range(1, 4)])
    assert re.search(r"halos +0\.001 +0\.001 ", with_ablation(whole, {"halos": worse}))
    assert re.search(r"halos +-0\.001 +-0\.001 ", with_ablation(worse, {"halos": whole}))
    hardly = by_set([one(n, 1.1004) for n in range(1, 4)])
    assert "halos" not in with_ablation(whole, {"halos": hardly})


SCRIPT = load(ROOT / "scripts" / "recorded" / "model_report.py")


def test_the_script_predicts_by_what_it_is_told_to() -> None:
    """Every sixth kernel of a large set and all of a small one, with what was compiled and with all terms, or not."""
    machine = read_machine(RECORDED / "machine.toml")
    large, small = (read_study(RECORDED / name) for name in ("d3q19-sphere-fast-fp32", "d3q19-small-32"))
    assert len(SCRIPT.judged("s", small, machine, every=6)) == 64
    usual = SCRIPT.judged("s", large, machine, every=6)
    assert len(usual) == -(-200 // 6)
    for known in ({"without": frozenset({"instructions"})}, {"compiled": False}):
        other = SCRIPT.judged("s", large, machine, every=6, **known)
        assert [one.key for one in other] == [one.key for one in usual]
        assert [one.measured for one in other] == [one.measured for one in usual]
        assert sum(a.predicted != b.predicted for a, b in zip(other, usual, strict=True)) > 10, known


def test_the_script_takes_a_shared_processor_as_it_was_or_as_it_is_described() -> None:
    folder = RECORDED.parent / "zen3-2-cores"
    study, machine = read_study(folder / "d3q19-box-fast-fp32"), read_machine(folder / "machine.toml")
    was, told = (SCRIPT.judged("s", study, machine, described=described) for described in (False, True))
    case = study.header.spec.case
    configs = {trial.key: from_flat(trial.config) for trial in study.trials}
    assert all(one.predicted == predict(case, configs[one.key], machine).mlups for one in told)
    assert by_set(was).loc["s", "rank"] > by_set(told).loc["s", "rank"] + 0.3


@pytest.mark.usefixtures("one_published")
def test_terms_are_held_against_all_of_them_on_the_same_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where what is left out is none of them, every sixth kernel is predicted as it is anyway."""
    shutil.copytree(RECORDED / "d3q19-small-32", tmp_path / "card" / "small")
    shutil.copy(RECORDED / "machine.toml", tmp_path / "card")
    monkeypatch.setattr(SCRIPT, "_FEW", 10)
    monkeypatch.setattr(SCRIPT, "TERMS", ("none of them",))
    assert SCRIPT.main([str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    printed_text = capsys.readouterr().out
    assert "without a term" in printed_text
    assert "none of them" not in printed_text


def test_the_figure_has_logarithmic_speeds_and_no_two_sets_look_alike() -> None:
    many = [replace(one(n + 1, 1.0), set=f"set {n:02}") for n in range(40)]
    found = figure(many)
    assert found.layout.xaxis.type == "log"
    assert len({(trace.marker.color, trace.marker.symbol) for trace in found.data}) == len(found.data) == 40
    assert all("fullData.name" in trace.hovertemplate for trace in found.data)


def test_hovering_over_a_varied_axis_tells_the_speed_and_its_legend_stands_beside(tmp_path: Path) -> None:
    case, config = box("d3q19", "bgk", (128, 128, 128)), cuda.Direct()
    expected = predict(case, config, named_machine("h200"))
    found = varied.terms_figure("scheme", {"pull": expected})
    assert found.layout.legend.orientation == "v"
    for bar in found.data:
        assert f"{format_mlups(expected.mlups)} MLUPS<br>" in bar.customdata[0]
        assert "%{customdata}" in bar.hovertemplate
    varied.write_varied(tmp_path / "page.html", "t" * 400, "scheme", {"pull": expected})
    assert "overflow-wrap: anywhere" in (tmp_path / "page.html").read_text()
