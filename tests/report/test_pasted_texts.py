"""Texts of the page to use the winner, pasted into a shell as they are shown, in the folder of the study.

A script in place of nvcc compiles for the host shim, since tests have no GPU.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lbmtune.catalogue.config import KernelConfig, cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import cavity
from lbmtune.codegen.render import render
from lbmtune.export import best
from lbmtune.records.best_json.document import encode_best
from lbmtune.records.store import append_trial, write_header
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.use import tabs, used
from tests.shim.device import COMPILER, RUNTIME
from tests.support.kernels.headers import linked
from tests.support.paths import ROOT
from tests.support.studies import made_up_records as made

ON_GPU = cavity("d3q19", "bgk", (32, 8, 4), 1.3), cuda.Direct(block=(32, 1, 1))
ON_CPU = cavity("d3q19", "bgk", (64, 16, 8), 1.3), cpu.Direct(scheme="aa", threads=2)
NVCC = """#!/bin/sh
for word do shift; case $word in -ftz*|-prec-div*|-arch*) ;; *.cu) set -- "$@" -x c++ "$word" -x none ;;
*) set -- "$@" "$word" ;; esac; done
exec {compiler} -O1 -DSHIM_NAMESPACE=lbm -U_FORTIFY_SOURCE -Wno-unknown-pragmas -I {runtime} "$@" {linked}
"""
"""Takes what nvcc takes, leaves out what only that knows, and links the shim into programs."""


def study_of(case: Case, config: KernelConfig) -> StudyRecord:
    """A study with one kernel, which nobody has measured."""
    study = made.gpu_study(1) if config.backend == "cuda" else made.cpu_study()
    winner = study.ranked[0]
    trial = replace(winner, config=config.flat(), key=config.key, source_digest=render(case, config).digest, final=None)
    spec = replace(study.header.spec, name="made-up", case=case)
    return replace(study, header=replace(study.header, spec=spec, finished=True), trials=(trial,))


@pytest.fixture
def pasted(tmp_path: Path) -> Pasted:
    return Pasted(tmp_path)


class Pasted:
    """Runs texts in the folder of a study, with scripts in place of programs that are not installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._programs = folder / "study", folder / "bin"
        self._programs.mkdir()
        self.program("lbmtune", f'#!/bin/sh\nexec {sys.executable} -m lbmtune "$@"\n')

    def program(self, name: str, text: str) -> None:
        path = self._programs / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, study: StudyRecord, name: str) -> str:
        self.folder.mkdir()
        write_header(self.folder, study.header)
        for trial in study.trials:
            append_trial(self.folder, trial)
        (self.folder / "best.json").write_bytes(encode_best(best(study)))
        (text,) = (tab.text for tab in tabs(used(study)) if tab.name == name)
        search = os.pathsep.join((str(self._programs), os.environ["PATH"]))
        environment = {**os.environ, "PATH": search, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["sh", "-e", "-c", text], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


def check_flow(printed: str) -> None:
    """A cavity that is driven: its mean density is one, and nothing moves faster than the lid; then the speed."""
    *_, values, speed = printed.splitlines()
    density, fastest = map(float, values.split())
    assert density == pytest.approx(1, abs=0.001)
    assert 0.01 < fastest < 0.11
    assert float(speed.partition(" MLUPS; the study measured ")[0]) >= 0


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("name", ["C++", pytest.param("C", marks=pytest.mark.slow)])
def test_the_text_for_a_gpu_builds_and_runs(name: str, pasted: Pasted) -> None:
    links = f'$(case " $* " in *" -c "*) ;; *) echo {" ".join(map(str, linked()))} ;; esac)'
    pasted.program("nvcc", NVCC.format(compiler=COMPILER, runtime=RUNTIME, linked=links))
    check_flow(pasted.run(study_of(*ON_GPU), name))


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("gcc") or COMPILER is None, reason="no C or C++ compiler (gcc, g++)")
@pytest.mark.parametrize("name", ["C++", "C"])
def test_the_text_for_a_processor_builds_and_runs(name: str, pasted: Pasted) -> None:
    check_flow(pasted.run(study_of(*ON_CPU), name))


@pytest.mark.slow
def test_the_command_line_runs_as_it_is_pasted(pasted: Pasted) -> None:
    """A minute: the processor is calibrated for the profile."""
    study = study_of(*ON_CPU)
    printed = pasted.run(study, "Command line")
    assert "legal" in printed
    assert (pasted.folder / "report.html").exists()
    assert (pasted.folder / "profile.json").exists()
