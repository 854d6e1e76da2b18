"""The script that measures named kernels in turns, as far as it needs no GPU."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from types import ModuleType

import pytest

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.codegen.render import render
from lbmtune.records import Outcome
from lbmtune.records.best_json.document import read_best
from lbmtune.records.store import read_study
from scripts.measurements import interleaved
from tests.codegen.cuda.persistent.test_persistent import H200
from tests.support.paths import ROOT
from tests.support.studies import fake_study

SCRIPT = ROOT / "scripts" / "measurements" / "interleaved.py"
RECORDED = ROOT / "studies" / "recorded" / "nvidia-h200"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return interleaved


def test_the_best_of_every_recorded_set_of_a_small_domain_is_among_them(script: ModuleType) -> None:
    folders = sorted(RECORDED.glob("d3q19-small-*"))
    assert len(folders) >= 5
    for folder in folders:
        edge, best = int(folder.name.rpartition("-")[2]), read_best(folder / "best.json")
        assert edge in script.EDGES
        assert script.case_of(edge) == best.case
        assert best.config in [kernel.config for kernel in script.named(edge, H200)]


def test_moments_on_chip_are_those_of_the_page(script: ModuleType) -> None:
    """In single precision as the table has them, and in 16 bits where it has them."""
    page = (ROOT / "docs" / "lab" / "small-domains.md").read_text()
    assert f"after `{script.ON_CHIP}`" in page
    rows = re.findall(r"^\| (\d+)\^3 \| (\w+) \| `([^`]+)` \|", page, re.MULTILINE)
    single = {(str(edge), "fp32") for edge in (32, 48, 64, 80, 96)}
    assert {(edge, storage) for edge, storage, _ in rows} == single | {("64", "fp16s"), ("96", "fp16s"), ("96", "bf16")}
    for edge, storage, shape in rows:
        known = {name: kernel.config for kernel in script.named(int(edge), H200) for name in kernel.name.split("; ")}
        asked = script.configuration(f"{script.ON_CHIP},storage={storage},{shape}", H200)
        assert known[f"moments on chip, {storage}"] == asked


def test_what_the_page_says_of_recorded_sets_is_in_them(script: ModuleType) -> None:
    """The fastest final with moments on chip, and the fastest without, of kernels with the same collision."""
    table = (
        (ROOT / "docs" / "lab" / "small-domains.md")
        .read_text()
        .partition("| MLUPS | without |\n")[2]
        .partition("\n\n")[0]
    )
    rows = re.findall(r"^\| (\d+)\^3 \| fp32 \| `([^`]+)` \| ([\d,]+) \| ([\d,]+): ", table, re.MULTILINE)
    assert {int(edge) for edge, *_ in rows} == {64, 80, 96}
    for edge, shape, *said in rows:
        study = read_study(RECORDED / f"{script.STUDY}-{edge}")
        assert study.header.spec.case.collision == "regularised"
        finals = [(from_flat(trial.config), trial.final.mlups) for trial in study.ranked if trial.final]
        on_chip = [(config, mlups) for config, mlups in finals if config.family == "persistent" and config.of_moments]
        fastest, _ = max(on_chip, key=itemgetter(1))
        assert fastest == script.configuration(f"{script.ON_CHIP},storage=fp32,{shape}", H200)
        parts = (on_chip, [one for one in finals if one not in on_chip])
        assert said == [f"{max(mlups for _, mlups in part):,.0f}" for part in parts]


def test_all_of_them_fit_on_an_h200(script: ModuleType) -> None:
    for edge in script.EDGES:
        kernels = list(script.named(edge, H200))
        assert len({kernel.config for kernel in kernels}) == len(kernels) > 0, "none is raced against itself"
        names = [name for kernel in kernels for name in kernel.name.split("; ")]
        assert len(set(names)) == len(names)
        if edge in (64, 80, 96):
            assert names[-3:] == [f"moments on chip, {storage}" for storage in ("fp32", "fp16s", "bf16")]
        for kernel in kernels:
            assert broken(script.case_of(edge), kernel.config, replace(H200, memory_bytes=1 << 37)) is None
            assert render(script.case_of(edge), kernel.config).entries


def test_kernels_of_a_file_are_legal_and_there_is_one_of_each(script: ModuleType) -> None:
    groups = script.read(SCRIPT.parent / "fastest.toml")
    assert {group.case.domain[0] for group in groups} == {256, 384}
    for group in groups:
        configs = [kernel.config for kernel in group.known(H200)]
        assert len(set(configs)) == len(configs) > 1
        for config in configs:
            assert broken(group.case, config, replace(H200, memory_bytes=1 << 37)) is None


def test_what_is_known_of_large_domains_is_kept_by_the_name_of_its_file(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Device(fake_study.FakeEvaluator):
        limits = H200

    known = tmp_path / "two.toml"
    shapes = ["scheme=pull,layout=soa,block=64x1x1", "scheme=aa,layout=soa,block=64x1x1"]
    known.write_text(
        f'[[group]]\nstudy = "d3q19-box"\nset = ["case.domain=64x64x64"]\nkernels = {json.dumps(shapes)}\n'
    )
    monkeypatch.setattr(script, "opener", lambda _: lambda case, protocol: Device("cuda"))
    monkeypatch.setattr(sys, "argv", ["interleaved.py", str(tmp_path / "out"), "--known", str(known)])
    assert script.main() == 0
    (group,) = json.loads((tmp_path / "out" / "two.json").read_text())["groups"]
    assert group["case"]["domain"] == [64] * 3
    assert [row["name"] for row in group["kernels"]] == shapes
    assert [from_flat(row["trial"]["config"]).scheme for row in group["kernels"]] == ["pull", "aa"]


def test_turns_keep_samples_and_where_they_come_from(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    class Device(fake_study.FakeEvaluator):
        limits = H200

    def opened(case: object, protocol: object) -> Device:
        asked.append(protocol.final_rounds)  # type: ignore[attr-defined]
        return Device("cuda")

    monkeypatch.setattr(script, "opener", lambda _: opened)
    monkeypatch.setattr(sys, "argv", ["interleaved.py", str(tmp_path), "--edges", "64,80", "--rounds", "11"])
    assert script.main() == 0
    assert asked == [11, 11]
    found = json.loads((tmp_path / "turns.json").read_text())
    assert found["environment"]["backend"] == "cuda"
    assert {"version", "date"} <= found.keys()
    assert [group["case"]["domain"] for group in found["groups"]] == [[64] * 3, [80] * 3]
    assert [len(group["kernels"]) for group in found["groups"]] == [4, 4]
    for group in found["groups"]:
        assert group["protocol"]["final_rounds"] == 11
        for row in group["kernels"]:
            trial = row["trial"]
            assert trial["final"]["samples_s"]
            assert from_flat(trial["config"]).key == trial["key"]
    assert "moments on chip, bf16" in capsys.readouterr().out


def test_a_kernel_that_takes_half_as_long_has_twice_the_speed_of_the_first(script: ModuleType) -> None:
    """Of those that have one, round by round."""
    configs = [kernel.config for kernel in script.named(64, H200)]
    trials = fake_study.FakeEvaluator("cuda").finals(configs)
    assert trials[1].final
    rounds = [1e-3 * (1 + 0.01 * n) for n in range(11)]
    crashed = replace(trials[0], outcome=Outcome.CRASHED, reason="planted", final=None)
    slow, fast = (
        replace(trials[1], final=replace(trials[1].final, samples_s=tuple(s / times for s in rounds)))
        for times in (1, 2)
    )
    kernels = [{"name": name, "trial": one} for name, one in (("a", crashed), ("b", slow), ("c", fast))]
    said = list(script.lines({"case": script.case_of(64), "seconds": 1.0, "kernels": kernels}))
    assert "crashed: planted" in said[1]
    assert "1.000 (1.000 to 1.000)" in said[2]
    assert "2.000 (2.000 to 2.000)" in said[3]


def test_a_kernel_without_a_speed_shows_in_the_exit_code(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Device(fake_study.FakeEvaluator):
        limits = H200

        def finals(self, configs):  # type: ignore[no-untyped-def]
            first, *others = super().finals(configs)
            return [replace(first, outcome=Outcome.CRASHED, reason="planted", final=None), *others]

    monkeypatch.setattr(script, "opener", lambda _: lambda *_: Device("cuda"))
    monkeypatch.setattr(sys, "argv", ["interleaved.py", str(tmp_path), "--edges", "64"])
    assert script.main() == 1
    assert "crashed: planted" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["interleaved.py", str(tmp_path), "--rounds", "5"])
    with pytest.raises(SystemExit):
        script.main()
