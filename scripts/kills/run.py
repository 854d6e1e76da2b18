"""One process of a study that is killed."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import psutil

from scripts.paths import ROOT

WORKING, DONE = "legal configurations", "\nbest.json  "
"""What a study says when it begins or goes on, and at its end."""
LIMIT_S, GONE_S = 1200.0, 10.0
"""Until a study has to have ended by itself, and until its processes have to be gone after a kill."""


class Run:
    """One process of a study, in a session of its own, and what it has printed so far. hit: it lost a worker."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        """Start the process."""
        self.hit = False
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "10000", "PYTHONPATH": str(ROOT), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self._lines.extend(self.process.stdout)

    @property
    def text(self) -> str:
        """Return what was printed so far."""
        return "".join(self._lines)

    @property
    def working(self) -> bool:
        """Return whether the study has begun or was resumed."""
        return WORKING in self.text

    @property
    def code(self) -> int | None:
        """Return the exit code; None while the process runs."""
        return self.process.poll()

    def reaches(self, reached: Callable[["Run"], object], limit_s: float = LIMIT_S) -> bool:
        """Wait until something holds; return False if the process ends before."""
        end = time.monotonic() + limit_s
        while self.code is None and time.monotonic() < end:
            if reached(self):
                return True
            time.sleep(0.02)
        return False

    def ends(self, limit_s: float = LIMIT_S) -> bool:
        """Wait for the end and for the last line; return False if the process does not end."""
        self.reaches(lambda _: False, limit_s)
        if self.code is None:
            return False
        self._reader.join(GONE_S)
        return True

    def workers(self) -> list[psutil.Process]:
        """Return the processes below that of the study."""
        try:
            return list(psutil.Process(self.process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return []

    def strike(self, number: int, whom: str, draw: Random) -> str:
        """Send a signal to the study, to one of its workers, or to all of its processes; return what it said before."""
        workers = self.workers()
        if whom == "worker":
            chosen, self.hit = [draw.choice(workers)] if workers else [], True
        else:
            chosen = [psutil.Process(self.process.pid), *(workers if whom == "all" else [])]
        before = self.text
        for process in chosen:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        return before
