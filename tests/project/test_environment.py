"""The scripts behind make: which Python and which CuPy they choose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SCRIPTS = ROOT / "scripts"


def _command(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _run(script: str, path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHON"}
    return subprocess.run(
        ["/bin/sh", str(SCRIPTS / script)],
        env=clean | {"PATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4 |", "cuda12"),
        ("| NVIDIA-SMI 580.95   Driver Version: 580.95   CUDA Version: 13.0 |", "cuda13"),
        ("| NVIDIA-SMI 595.10   KMD Version: 595.10   CUDA UMD Version: 13.2 |", "cuda13"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver", ""),
    ],
)
def test_the_driver_decides_which_cupy(tmp_path: Path, line: str, extra: str) -> None:
    _command(tmp_path, "nvidia-smi", f'echo "{line}"')
    assert _run("cuda_extra.sh", f"{tmp_path}:{os.defpath}").stdout.strip() == extra


@pytest.mark.parametrize("code", [0, 18])
def test_a_driver_that_fails_is_told_with_its_own_words(tmp_path: Path, code: int) -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    _command(tmp_path, "nvidia-smi", f'echo; echo "{said}"; echo "NVML library version: 550.54"; exit {code}')
    failed = _run("cuda_extra.sh", f"{tmp_path}:{os.defpath}")
    assert (failed.returncode, failed.stdout) == (0, "")
    assert failed.stderr == f"no GPU is used, because nvidia-smi fails: {said}\n"


def test_without_a_driver_nothing_is_said(tmp_path: Path) -> None:
    for name in ("sh", "sed", "head", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    silent = _run("cuda_extra.sh", str(tmp_path))
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")


def test_an_old_driver_is_told(tmp_path: Path) -> None:
    _command(tmp_path, "nvidia-smi", 'echo "| Driver Version: 470.1   CUDA Version: 11.4 |"')
    old = _run("cuda_extra.sh", f"{tmp_path}:{os.defpath}")
    assert old.stdout == ""
    assert "CUDA 11, CuPy needs 12 or newer" in old.stderr


def test_a_python_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    _command(tmp_path, "python3.12", "echo shim without a version behind it >&2; exit 127")
    _command(tmp_path, "python3.11", f'exec "{sys.executable}" "$@"')
    assert _run("find_python.sh", str(tmp_path)).stdout.strip() == str(tmp_path / "python3.11")


def test_a_named_python_comes_first(tmp_path: Path) -> None:
    _command(tmp_path, "python3.11", f'exec "{sys.executable}" "$@"')
    assert _run("find_python.sh", str(tmp_path), PYTHON=sys.executable).stdout.strip() == sys.executable
