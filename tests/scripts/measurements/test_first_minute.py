"""First studies of a device, with studies that a short script stands for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.measurements.first_minute import Row, main, short, told
from tests.support.paths import RECORDED

BEST = RECORDED / "nvidia-h100" / "d3q19-box-fast-fp32" / "best.json"


def test_each_seed_begins_without_a_cache_and_the_second_study_knows_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    homes = list[tuple[Path, str]]()

    def run(command: list[str], cwd: Path, env: dict[str, str], **_: object) -> None:
        homes.append((Path(env["LBMTUNE_CACHE"]).relative_to(cwd), cwd.name))
        folder = cwd / "lbmtune-studies" / f"study-{len(homes)}"
        folder.mkdir(parents=True)
        shutil.copy(BEST, folder / "best.json")

    monkeypatch.setattr(subprocess, "run", run)
    assert main([str(tmp_path), "--seeds", "2", "--long", "90", "box", "--domain", "64x64x64"]) == 0
    assert homes == [(Path("cache"), name) for name in ("home-1", "home-2", "home-2", "home-long")]
    rows = json.loads((tmp_path / "first-minute.json").read_text())
    assert [(row["kind"], row["seed"], row["given_s"]) for row in rows] == [
        *(("first", 1, 60.0), ("first", 2, 60.0), ("second", 3, 25.0), ("long", 0, 90.0)),
    ]
    assert rows[0]["mlups"] == json.loads(BEST.read_text())["expected"]["mlups"]
    assert len(list(tmp_path.glob("*/best.json"))) == 4
    out = capsys.readouterr().out.splitlines()
    assert out[2].startswith("box --domain 64x64x64 --device 0         second   seed 3: ")
    assert out[2].endswith("MLUPS 100.00%")


def test_a_late_study_and_a_slow_winner_show() -> None:
    rows = [Row("box", "first", seed, 60.0, took, mlups, "") for seed, (took, mlups) in enumerate(STUDIES)]
    assert [row.seed for row in short(rows)] == [1, 2, 3]
    assert told(rows)[2].endswith("98.90%")


STUDIES = ((59.0, 1000.0), (60.5, 1000.0), (59.0, 989.0), (59.0, 0.0), (60.0, 990.0))
