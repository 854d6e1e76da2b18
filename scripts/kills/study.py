"""A study that is killed and resumed, and the checks of its records."""

import json
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import psutil

from lbmtune.records.best_json.document import read_best
from lbmtune.records.store import read_study
from lbmtune.records.whole_files import HEADER, TRIALS
from scripts.kills.run import DONE, GONE_S, WORKING, Run

STUDY = Path(__file__).with_name("study.toml")
WAYS = (
    ("SIGKILL", "study"),
    ("SIGKILL", "worker"),
    ("SIGKILL", "all"),
    *product(("SIGINT", "SIGTERM", "SIGHUP"), ("study", "all")),
)
STAGES: dict[str, Callable[["Study", "Run"], object]] = {
    "start": lambda _study, _run: True,
    "trials": lambda study, run: run.working and study.content().count(b"\n") >= study.next_lines,
    "finals": lambda _study, run: "finals: " in run.text,
    "sustained": lambda _study, run: "sustained: " in run.text,
    "accuracy": lambda study, run: run.working and b'"sustained":{' in study.content(),
    "report": lambda study, run: run.working and b'"accuracy":{' in study.content(),
}
"""Whether a study has reached a stage, in order."""
DELAYS_S = {"start": 8.0, "trials": 0.5, "finals": 2.0, "sustained": 1.5, "accuracy": 0.5, "report": 2.0}
"""Longest delay of a kill after its stage has begun."""
ENDED_S = 60.0
"""Until a study has to have ended that a signal asked to end."""
INTERRUPTED, UNAVAILABLE = 130, 3
BEST, REPORT = "best.json", "report.html"
FILES = {HEADER, TRIALS, BEST, REPORT, "optuna.log", ".lock"}
_TRIAL = re.compile(r"trial (\d+), \d+ of")


class Kill(NamedTuple):
    """Which signal is sent to whom in which stage."""

    signal: str
    whom: str
    stage: str


@dataclass
class Study:
    """A study that is killed and resumed, and what is known of its records.

    wrong: flaws that nobody has taken yet; told: trials that progress told of; before: lines that are on file;
    next_lines: count of lines at which a kill in the trials happens.
    """

    place: Path
    trials: int
    wrong: list[str] = field(default_factory=list)
    told: set[int] = field(default_factory=set)
    before: bytes = b""
    next_lines: int = 1
    _run: Run | None = None

    def __post_init__(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        self.scratch.mkdir(parents=True)

    @property
    def folder(self) -> Path:
        """Return the folder of the study."""
        return self.place / "study"

    @property
    def scratch(self) -> Path:
        """Return the folder of its temporary files."""
        return self.place / "tmp"

    def content(self) -> bytes:
        """Return the file of trials, empty if it is not there."""
        path = self.folder / TRIALS
        return path.read_bytes() if path.exists() else b""

    def kill(self, kill: Kill, draw: Random) -> bool:
        """Kill the study and check what is left; return False if it ended before."""
        self.next_lines = max(draw.randint(1, self.trials), self.content().count(b"\n") + 1)
        run = self._reach(lambda run: STAGES[kill.stage](self, run) and (kill.whom != "worker" or run.workers()))
        time.sleep(draw.uniform(0.0, DELAYS_S[kill.stage]))
        if run.code is not None:
            return False
        scratch, number = set(self.scratch.iterdir()), signal.Signals[kill.signal]
        before = run.strike(number, kill.whom, draw)
        if kill.whom != "worker":
            self._check(run.ends(ENDED_S), f"it runs on after {kill.signal}")
            self._check_end(run)
            if number != signal.SIGKILL:
                self.check_answer(number, run.code, before, run.text)
                left = [one.name for one in self.scratch.iterdir() if one not in scratch]
                self._check(not left, f"{left} left in TMPDIR")
        self.check_records(run.text)
        return True

    def finish(self) -> None:
        """Let the study end by itself, and check it."""
        run = self._reach(lambda _: False)
        self._check_end(run)
        self.check_records(run.text)
        self._check(run.code == 0, f"exit code {run.code}: {run.text[-300:]!r}")
        if run.code != 0:
            return
        study, best = read_study(self.folder), read_best(self.folder / BEST)
        self._check(len(study.trials) == self.trials, f"{len(study.trials)} trials, not {self.trials}")
        slow = [f"{one.number} {one.outcome}, {one.reason}" for one in study.trials if one.mlups is None]
        self._check(not slow, f"trials without speed: {'; '.join(slow)}")
        winner = study.winner
        self._check(winner is not None and winner.key == best.key, "best.json is not of the winner")
        lacks = [name for name in ("final", "sustained", "accuracy") if getattr(winner, name, None) is None]
        self._check(not lacks, f"the winner has no {' and no '.join(lacks)}")
        page = (self.folder / REPORT).read_text(encoding="utf-8")
        self._check(best.key in page and page.rstrip().endswith("</html>"), "the report is not of the winner")
        left = {one.name for one in (*self.folder.iterdir(), *self.scratch.iterdir())} - FILES
        self._check(not left, f"{left} left")

    def close(self) -> None:
        """End what is left of the study, if the script is stopped or a study does not end."""
        for process in _processes(self.scratch):
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def take_flaws(self) -> list[str]:
        """Return the flaws that were found since the last call, and forget them."""
        found, self.wrong = self.wrong, []
        return found

    def check_answer(self, number: int, code: int | None, before: str, after: str) -> None:
        """Check how a study ends that a signal asked to end, by what it said before the signal and in all.

        The signal itself may end a process that is not at work yet or has done it.
        """
        at_work = WORKING in before and DONE not in before
        rough = set() if at_work else {0, -number}
        self._check(code in {INTERRUPTED, *rough}, f"exit code {code}")
        self._check(not at_work or "--resume" in after, f"nothing says how to go on: {after[-300:]!r}")

    def check_records(self, said: str) -> None:
        """Check the records against what is known of them and what a process has said, and remember them."""
        self.told |= {int(number) for number in _TRIAL.findall(said)}
        content = self.content()
        whole = content[: content.rfind(b"\n") + 1]
        self._check(whole.startswith(self.before), "lines that were there have changed")
        self.before = whole
        try:
            lines = [json.loads(line) for line in whole.splitlines()]
        except ValueError as error:
            self._check(False, f"a line is damaged: {error}")
            return
        first: dict[int, dict[str, Any]] = {}
        for line in lines:
            known = first.setdefault(line["number"], line)
            same = all(line[name] == known[name] for name in ("key", "config", "measurement"))
            self._check(same, f"trial {line['number']} has changed")
        self._check(len({line["key"] for line in first.values()}) == len(first), "a configuration was tried twice")
        lost = sorted(self.told - first.keys())
        self._check(not lost, f"trials {lost} were told of and are lost")

    def _reach(self, reached: Callable[[Run], object]) -> Run:
        """Return the process in which something holds, or which ends before."""
        while True:
            run = self._run = self._run or self._begun()
            if run.reaches(reached) or run.code != UNAVAILABLE or not run.hit:
                return run
            self._check_end(run)  # it lost the worker that opens the device

    def _begun(self) -> Run:
        command = [sys.executable, "-m", "lbmtune", "study", str(STUDY), "--device=cpu", f"--trials={self.trials}"]
        command += [
            "--no-calibration",
            "--output",
            str(self.folder),
            *(["--resume"] if (self.folder / HEADER).exists() else []),
        ]
        shared = {f"LBMTUNE_{name}": str(self.place.parent / name.lower()) for name in ("CACHE", "CONFIG", "LOCKS")}
        return Run(command, {"TMPDIR": str(self.scratch), **shared})

    def _check(self, holds: bool, otherwise: str) -> None:
        self.wrong += [] if holds else [otherwise]

    def _check_end(self, run: Run) -> None:
        """Check a process that should have ended, and end what is left of it."""
        self._run = None
        end = time.monotonic() + GONE_S
        while (left := list(_processes(self.scratch))) and time.monotonic() < end:
            time.sleep(0.1)
        self._check(not left, f"processes left: {[one.pid for one in left]}")
        self.close()
        run.ends()
        self._check("Traceback" not in run.text, f"a traceback: {run.text[-300:]!r}")


def _processes(scratch: Path) -> Iterator[psutil.Process]:
    """Yield the processes that have a folder for temporary files."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("TMPDIR") == str(scratch):
                yield process
