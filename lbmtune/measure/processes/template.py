"""Fork workers from a process that has imported what they need, which takes most of the time of a start.

The template has one thread and opens no device. What it forks becomes a child of the process that asked, and of no
other: that one alone waits for it, so that its number and that of its group stay reserved until then.
"""

import ctypes
import logging
import os
import pickle
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
LOG = logging.getLogger("lbmtune")
_LIMIT_S = 60.0
_ENDS_S = 5.0
_MOST_FAILURES = 2
_READ_ON_IMPORT = ("LD_", "MKL_", "NPY_", "NUMBA_", "OMP_", "OPENBLAS_", "PYTHON")
"""How variables begin that Python or a library reads when it is loaded."""
_INHERITED = ("Umask", "Uid", "Gid", "Groups", "SigBlk", "SigIgn", "CapEff", "Cpus_allowed", "Mems_allowed", "Seccomp")


class Forked:
    """A child that another process forked, with what is needed here of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or minus the signal that ended the process; None if it runs."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int | None:
        """Wait for the end of the process, and return its exit code."""
        return self._waited(0)

    def _waited(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


class Template:
    """A process that forks others. It ends with the one that started it."""

    def __init__(self, example: Any, environment: Mapping[str, str]) -> None:
        """Start it. example: picklable; the template imports what this names. Raises OSError."""
        self.inherited, self._ready = inherited(), False
        with ExitStack() as undone:
            self._log = undone.enter_context(tempfile.TemporaryFile())
            self._asking, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undone.callback(self._asking.close)
            self._asking.settimeout(_LIMIT_S)
            serving = f"fork_workers({theirs.fileno()}, {os.getpid()})"
            call = f"from lbmtune.measure.processes.serve import fork_workers; {serving}"
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; {call}"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._log,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                    env=environment,
                )
            undone.callback(self._kill)
            self._asking.send(pickle.dumps(example))
            undone.pop_all()

    def fork(self, handle: int, log: int, environment: Mapping[str, str]) -> Forked:
        """Return a worker with this end of its pipe, log and environment. Raises OSError if there is none."""
        if not self._ready:  # it has imported all then, and answers at once
            self._answer()
            self._ready = True
        with _adopting():
            socket.send_fds(self._asking, [pickle.dumps(dict(environment))], [handle, log])
            return Forked(int(self._answer()))

    def _answer(self) -> bytes:
        if answer := self._asking.recv(32):
            return answer
        raise OSError(self._last_words() or "it has ended")

    def _last_words(self) -> str:
        """Return the last line that it printed, the error of a traceback; empty if it printed nothing."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_S)  # its socket is closed before a traceback is printed
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """End the process; what it forked goes on."""
        self._asking.close()
        self._log.close()
        self._kill()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


_LOCK = Lock()
_template: Template | None = None
_failures = 0
"""Times in a row that there was no worker to be had."""


def forked(example: Any, handle: int, log: int, environment: Mapping[str, str]) -> Forked | None:
    """Return a worker that a template has forked, as `Template.fork` does; None where there is none to be had.

    There is one template, and another one if what it inherited has changed here since. Where it fails a second time,
    none is started any more, and a warning says why.
    """
    global _template, _failures  # noqa: PLW0603
    if not sys.platform.startswith("linux") or _failures >= _MOST_FAILURES:
        return None
    with _LOCK:
        try:
            if _template and _template.inherited != inherited():
                _template.end()
                _template = None
            _template = _template or Template(example, environment)
            found = _template.fork(handle, log, environment)
            _failures = 0
            return found
        except BaseException as error:  # an interrupt, too: its answer would be taken for the next one's
            if _template:
                _template.end()
            _template = None
            if not isinstance(error, OSError):
                raise
            _failures += 1
            if _failures == _MOST_FAILURES:
                LOG.warning("workers are started anew, not forked, which takes longer: %s.", str(error).rstrip("."))
            return None


def inherited() -> tuple[object, ...]:
    """Return what a process has from the one that starts it, beside its files and other variables."""
    lines = Path("/proc/thread-self/status").read_text().splitlines()
    variables = sorted(item for item in os.environ.items() if item[0].startswith(_READ_ON_IMPORT))
    return (
        os.getpid(),
        Path.cwd(),
        tuple(sys.path),
        tuple(variables),
        tuple(line for line in lines if line.startswith(_INHERITED)),
        Path("/proc/self/limits").read_text(),
        Path("/proc/self/cgroup").read_text(),
        os.getpriority(os.PRIO_PROCESS, 0),
    )


@contextmanager
def _adopting() -> Iterator[None]:
    """Have processes below this one whose parent ends become children of this one."""
    control, before = ctypes.CDLL(None).prctl, ctypes.c_int()
    control(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    control(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        control(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)
