"""The installed package: a cheap import, and a wheel that holds kernels and studies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from lbmtune.version import of_checkout
from tests.support.paths import ROOT

HEAVY = ("cupy", "numba", "optuna", "plotly", "pandas")
IMPORT_LIMIT_S = 0.3

_TIMED_IMPORT = """
import sys, time
start = time.process_time()
import lbmtune
print(time.process_time() - start, *(name for name in {heavy!r} if name in sys.modules))
"""


def _run(*arguments: str, cwd: Path = ROOT, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_import_is_cheap_and_loads_nothing_heavy() -> None:
    runs = [_run("-c", _TIMED_IMPORT.format(heavy=HEAVY)).split() for _ in range(3)]
    assert not any(loaded for _, *loaded in runs)
    assert min(float(seconds) for seconds, *_ in runs) < IMPORT_LIMIT_S


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("arguments", ["", "--device cpu", "--device=cpu --resume", "-d 1"])
def test_make_study_names_a_device_once(arguments: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "study", f"ARGS={arguments}"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    command = next(line for line in done.stdout.splitlines() if "lbmtune study" in line)
    assert len(re.findall(r"--device|-d ", command)) == 1
    assert command.endswith(arguments)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from lbmtune.cli import main; sys.argv = ['lbmtune', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: code = end.code\n"
        f"print('loaded:', *(name for name in {(*HEAVY, 'sympy')!r} if name in sys.modules), code)"
    )
    assert _run("-c", code).splitlines()[-1] == "loaded: 0"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    alone = [] if find_spec("versioningit") is None else ["--no-build-isolation"]  # of an older environment
    _run("-m", "pip", "wheel", "--quiet", "--no-deps", *alone, "--wheel-dir", str(folder), ".")
    return next(folder.glob("lbmtune-*.whl"))


def test_wheel_holds_every_kernel_and_study_and_no_recorded_set(wheel: Path) -> None:
    kernels = [p for p in (ROOT / "kernels").rglob("*") if p.is_file()]
    folder = ROOT / "studies"
    studies = [path for part in (".", "spaces", "published") for path in folder.glob(f"{part}/*.toml")]
    assert any(p.suffix == ".cu" for p in kernels)
    assert studies
    expected = {f"lbmtune/{p.relative_to(ROOT).as_posix()}" for p in kernels + studies}
    data = ("lbmtune/kernels/", "lbmtune/studies/")
    assert {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(data)} == expected


def test_installed_wheel_finds_kernels_and_studies(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    _run("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site), str(wheel))
    code = "from lbmtune.codegen.skeleton import kernels_folder; print(kernels_folder())"
    assert Path(_run("-c", code, cwd=tmp_path, PYTHONPATH=str(site)).strip()) == site / "lbmtune" / "kernels"
    command = "from lbmtune.cli import main; main()"
    listed = _run("-c", command, "list", "--json", cwd=tmp_path, PYTHONPATH=str(site))
    assert "esoteric-pull" in listed
    code = "from lbmtune.api.machines.shipped import shipped_machines; print(*shipped_machines())"
    assert _run("-c", code, cwd=tmp_path, PYTHONPATH=str(site)).split() == [
        "a100",
        *("c1060", "gtx-285", "gtx-titan"),
        "h100",
        "h100-datasheet",
        "h200",
        *("k20", "k20x", "k40c", "p100", "titan-x"),
        *("v100", "xeon-e5-2690v3", "xeon-phi-7210"),
    ]


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_versions_come_from_tags(tmp_path: Path) -> None:
    """Also without tags, as of a shallow clone, without git, and of an sdist; nothing needs a network."""
    versioningit = pytest.importorskip("versioningit")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    released = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["versioningit"]["default-version"]

    def version() -> str:
        return str(versioningit.get_version(tmp_path))

    assert version() == released, "sources alone"
    (tmp_path / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: lbmtune\nVersion: 0.7.0\n\n")
    assert version() == "0.7.0", "an sdist"
    (tmp_path / "PKG-INFO").unlink()
    _git(tmp_path, "init")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--message", "first")
    assert version() == released, "a shallow clone"
    _git(tmp_path, "tag", "v0.9.0")
    assert version() == "0.9.0"
    _git(tmp_path, "commit", "--allow-empty", "--message", "second")
    assert re.fullmatch(r"0\.9\.0\.post1\+g[0-9a-f]+", version())
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text() + "\n# changed\n")
    assert re.fullmatch(r"0\.9\.0\.post1\+g[0-9a-f]+\.dirty", version())


def test_a_checkout_that_nobody_installed_is_of_the_last_release(tmp_path: Path) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+\+unknown", of_checkout(ROOT / "pyproject.toml"))
    assert of_checkout(tmp_path / "pyproject.toml") == "0+unknown"
