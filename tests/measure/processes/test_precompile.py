"""Texts that other processes compile meanwhile: which are waited for, what fails there, and who is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Timer

import psutil
import pytest

from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.codegen.probes import issue_probe
from lbmtune.codegen.program import Program
from lbmtune.measure.processes.precompile import precompiled
from lbmtune.records import Resources
from tests.project.test_process_pool import is_running
from tests.support.waiting import until

PROGRAM = issue_probe()
DESCRIBED = """
import os, signal, sys
from functools import partial
from pathlib import Path
from lbmtune.measure.processes.worker import await_answer
from lbmtune.measure.processes.worker import Worker
from tests.measure.processes import test_precompile
folder = Path(sys.argv[1])
worker = Worker("describes", partial(test_precompile.opened, folder), {}, folder / "log")
try:
    worker.send(None, None)
    await_answer(worker, None)
    await_answer(worker, None)
finally:
    worker.end()
"""


def text(number: int) -> Program:
    return replace(PROGRAM, source=f"text {number}")


def noting(folder: Path, program: Program) -> Binary:
    """Leaves a note that it was called, and in which process; files say which texts are slow, wrong or deadly."""
    number = program.source.removeprefix("text ")
    with (folder / number).open("a") as notes:
        notes.write(f"{os.getpid()}\n")
    while (folder / f"slow {number}").exists():
        time.sleep(0.01)
    if (folder / f"wrong {number}").exists():
        raise CompileError(f"no {number}")
    if (folder / f"deadly {number}").exists() and (folder / "here").read_text() != str(os.getpid()):
        os._exit(3)
    return Binary(b"", "", Resources(), str(os.getpid()))


def who(folder: Path, number: int) -> list[int]:
    """Processes that compiled a text, one after another."""
    path = folder / str(number)
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def waited_for(path: Path) -> None:
    until(lambda: path.exists() and path.read_text())


def test_texts_are_compiled_elsewhere_in_their_order_and_once(tmp_path: Path) -> None:
    programs = [text(number) for number in (0, 1, 0, 2)]
    with precompiled(partial(noting, tmp_path), programs, 1) as compiler:
        waited_for(tmp_path / "2")
        logs = {compiler(program).log for program in programs}
        compiled = [who(tmp_path, number) for number in range(3)]
    assert len(logs) == 1, "all by the one process"
    assert compiled == [[int(logs.pop())]] * 3
    assert compiled[0] != [os.getpid()]
    assert (
        (tmp_path / "0").stat().st_mtime_ns < (tmp_path / "1").stat().st_mtime_ns < (tmp_path / "2").stat().st_mtime_ns
    )


@pytest.mark.parametrize("processes", [0, 1])
def test_texts_that_no_process_was_told_of_are_compiled_here_once(tmp_path: Path, processes: int) -> None:
    known = [text(0)] if processes else []
    with precompiled(partial(noting, tmp_path), known, processes) as compiler:
        assert [compiler(text(number)).log for number in (1, 1, 2)] == [str(os.getpid())] * 3
    assert who(tmp_path, 1) == who(tmp_path, 2) == [os.getpid()]


def test_without_a_process_beside_it_all_are_compiled_here(tmp_path: Path) -> None:
    with precompiled(partial(noting, tmp_path), [text(0)], 0) as compiler:
        assert not who(tmp_path, 0), "before it is asked for"
        assert compiler(text(0)).log == str(os.getpid())


def test_a_text_that_is_not_ready_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "slow 0").touch()
    with precompiled(partial(noting, tmp_path), [text(0)], 1) as compiler:
        waited_for(tmp_path / "0")
        Timer(0.2, (tmp_path / "slow 0").unlink).start()
        assert [int(compiler(text(0)).log)] == who(tmp_path, 0) != [os.getpid()]


def test_what_the_compiler_refuses_elsewhere_it_refuses_here_with_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "wrong 0").touch()
    with precompiled(partial(noting, tmp_path), [text(0), text(1)], 1) as compiler:
        waited_for(tmp_path / "1")
        with pytest.raises(CompileError, match=r"^no 0$") as raised:
            compiler(text(0))
        assert compiler(text(1)).log != str(os.getpid()), "the others are not lost"
    assert raised.traceback[-1].name == "noting"
    assert len(set(who(tmp_path, 0))) == 2


def test_a_process_that_dies_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "here").write_text(str(os.getpid()))
    (tmp_path / "deadly 0").touch()
    with precompiled(partial(noting, tmp_path), [text(0), text(1)], 1) as compiler:
        waited_for(tmp_path / "0")
        assert [compiler(text(number)).log for number in (0, 1)] == [str(os.getpid())] * 2


def test_who_stops_measuring_does_not_wait_for_texts_that_nobody_has_begun_with(tmp_path: Path) -> None:
    many = [text(number) for number in range(50)]
    for number in (0, *range(40, 50)):
        (tmp_path / f"slow {number}").touch()

    def fails() -> None:
        with precompiled(partial(noting, tmp_path), many, 1):
            waited_for(tmp_path / "0")
            Timer(1.0, (tmp_path / "slow 0").unlink).start()
            raise RuntimeError("moved")

    with pytest.raises(RuntimeError, match="moved"):
        fails()
    assert not who(tmp_path, 49)


def opened(folder: Path) -> tuple[None, object]:
    """A session that never answers, with a process beside it that never gets ready."""

    def session(_: object, report: object) -> None:
        (folder / "slow 0").touch()
        with precompiled(partial(noting, folder), [text(0)], 1):
            waited_for(folder / "0")
            (folder / "describes").write_text(str(os.getpid()))
            time.sleep(600)

    return None, session


def test_nobody_is_left_when_the_measurement_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(DESCRIBED)
    ways = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(tmp_path / "work.py"), str(tmp_path)]
    with subprocess.Popen(command, env=ways, stderr=subprocess.PIPE, start_new_session=True) as process:
        waited_for(tmp_path / "describes")
        members = {process.pid, int((tmp_path / "describes").read_text()), *who(tmp_path, 0)}
        sessions = {os.getsid(member) for member in members}
        assert sessions == {process.pid, int((tmp_path / "describes").read_text())}
        assert members <= set(running(sessions))
        assert len(members) == 3
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does on Ctrl-C
        assert process.stderr
        assert b"KeyboardInterrupt" in process.stderr.read()
    until(lambda: not running(sessions))


def running(sessions: Container[int]) -> list[int]:
    """Processes of sessions that run."""
    found = []
    for process in psutil.pids():
        with suppress(ProcessLookupError):
            found += [process] * (os.getsid(process) in sessions and is_running(process))
    return found
