"""A study of the student's kernel on this processor, from its description to the best values."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lbmtune.api.machines import measured_machines
from lbmtune.api.machines.shipped import named_machine
from lbmtune.records.store import read_study
from tests.support.paths import RECORDED, ROOT

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (cc)")
EXAMPLE = ROOT / "examples" / "own-kernel" / "d2q9.c"
PROTOCOL = {
    "bail_out": 1000.0,
    "min_cpu_share": 0.0,
    "warmup_s": 0.001,
    "sample_s": 0.001,
    "final_sample_s": 0.002,
    "final_rounds": 3,
    "finalists": 2,
    "max_samples": 6,
    "sustained_s": 0.05,
    "settling_s": 0.01,
}
QUICK = [part for name, value in PROTOCOL.items() for part in ("--set", f"protocol.{name}={value}")]
Run = Callable[..., tuple[int, str, str]]


def test_a_study_ends_with_the_best_values(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    described = named_machine(str(RECORDED / "epyc-2-cores" / "machine.toml"))
    monkeypatch.setattr(measured_machines, "measured_machine", lambda *_, **__: described)
    few = ("--set", "OPT=O2", "--set", "TILE_Y=8", "--set", "threads=1", "--domain", "64x24")
    code, out, err = run("study", "--kernel", EXAMPLE, *few, "--trials", 3, "--output", "here", *QUICK)
    assert code == 0, err
    assert "own:d2q9-" in out
    record = read_study(tmp_path / "here")
    assert record.header.spec.kernel
    assert record.header.spec.kernel.source == EXAMPLE.read_text()
    assert len(record.trials) == 3
    assert record.winner
    assert record.winner.verification
    assert record.winner.verification.full_size
    page = (tmp_path / "here" / "report.html").read_text()
    assert "reference.py" not in page
    assert "step in NumPy" in page
    _check_values(run, tmp_path, record.winner.config)
    assert run("study", "--output", "here", "--resume")[2] == (
        "lbmtune: here holds the study of a kernel of your own; name its file again: lbmtune study --kernel FILE.\n"
    )
    assert "holds the study of a kernel of your own" in run("rank", "here")[2]
    assert "which no file here names" in run("measure", record.winner.key, "--study", "here")[2]
    code, _, err = run("study", "--kernel", EXAMPLE, *few, "--trials", 4, "--output", "here", "--resume", *QUICK)
    assert code == 0, err
    assert len(read_study(tmp_path / "here").trials) == 4


def _check_values(run: Run, folder: Path, values: dict[str, str | int]) -> None:
    best = json.loads((folder / "here" / "best.json").read_text())
    assert best["values"] == {name: value for name, value in values.items() if name not in ("backend", "family")}
    assert (best["format"], best["launch"], best["proven"]) == ("lbmtune.own-kernel", None, True)
    for kind, name in (("defines", "best.h"), ("flags", "best.flags")):
        assert run("export", "here", "--format", kind)[1] == f"wrote here/{name}\n"
    defines = (folder / "here" / "best.h").read_text().splitlines()
    assert f"#define TILE_X {values['TILE_X']}" in defines
    flags = (folder / "here" / "best.flags").read_text().split()
    subprocess.run(["cc", *flags, "-c", EXAMPLE, "-o", folder / "made.o"], check=True)
    assert "use format=best, defines, flags" in run("export", "here", "--format", "bundle")[2]
    assert "is not a best.json" in run("verify", "here/best.json")[2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("quick",), "does not go with STUDY quick; leave one of them out."),
        (("--lattice", "d3q19"), "--lattice: d3q19 is not supported for a kernel of your own (leave it out)"),
        (("--device", "0"), "device=0 is not supported for d2q9.c (use cpu)."),
        (("--domain", "64"), "--domain 64 is not of the form 512x512; give two or three cell counts."),
        (("--objective", "accuracy"), "objective=accuracy is not supported for a kernel of your own"),
        (("--storage", "sqlite:///x.db"), "does not go with --storage"),
    ],
)
def test_what_does_not_go_with_a_kernel(run: Run, options: tuple[str, ...], said: str) -> None:
    code, out, err = run("study", *options, "--kernel", EXAMPLE)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_description_is_begun(run: Run, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "mine.c")
    assert run("kernel", "init", "mine.c")[1].startswith("wrote mine.toml\nto do: ")
    assert run("kernel", "init", "mine.c")[0] == 2
    assert "use kernel init FILE" in run("kernel", "tune", "mine.c")[2]
    assert (
        "has no description beside it (absent.toml); lbmtune kernel init absent.c writes one"
        in run("study", "--kernel", "absent.c")[2]
    )
