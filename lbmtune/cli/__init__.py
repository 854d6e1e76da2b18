"""The command line: the only place that parses arguments and prints."""

import atexit
import errno
import gc
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lbmtune.cli import streams
from lbmtune.cli.app import VERBS, command
from lbmtune.cli.begun import begin
from lbmtune.cli.completion import of_whole_words
from lbmtune.cli.format.usage import UsageError, sentence
from lbmtune.cli.signals import like_ctrl_c
from lbmtune.errors import InputError, LbmtuneError
from lbmtune.printable import printable, shortened

_BAD = InputError.exit_code
_NAME_SHOWN = 60
"""Letters of a name that is too long for a file."""
_LONGEST = 400
"""Characters of the longest error, and how many of its end, which says what to do, are shown of a longer one."""


class _Notes(logging.Handler):
    """Prints remarks and progress of the package on standard error, a warning once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._warned: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        text = printable(record.getMessage())
        if record.levelno < logging.WARNING or text not in self._warned:
            print(text, file=sys.stderr, flush=True)
        if record.levelno >= logging.WARNING:
            self._warned.add(text)


@contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Print remarks and progress of the package on standard error meanwhile."""
    log, handler = logging.getLogger("lbmtune"), _Notes()
    level, propagate = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        log.propagate = propagate


def main(arguments: Sequence[str] | None = None) -> None:
    """Run lbmtune and exit.

    0 done, 1 nothing valid found, 2 bad input, 3 device unavailable, 4 a speed changed, 130 interrupted.
    """
    # the search's matrices are small: threads of NumPy's would compete with the compilers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # what is left at the end goes with the process: to search it for garbage took a quarter of a short command's time
    atexit.register(gc.freeze)
    streams.secure()
    begin(with_process=arguments is None)
    with like_ctrl_c(), notes_on_stderr(), of_whole_words():
        sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    """Run lbmtune and return its exit code."""
    try:
        # not standalone: there Typer prints errors itself, in several lines
        try:
            return command()(args=arguments, prog_name="lbmtune", standalone_mode=False) or 0
        finally:
            sys.stdout.flush()
    except UsageError as error:
        if not arguments:
            error.show()  # the help
            return int(error.exit_code)
        verb = arguments[0] if arguments[0] in VERBS else ""
        return _refused(sentence(error, verb), error.exit_code)
    except LbmtuneError as error:
        return _refused(str(error), error.exit_code)
    except OSError as error:
        if error.errno == errno.EACCES and error.filename:
            return _refused(f"cannot read {error.filename}: {error.strerror}; see to its permissions.", _BAD)
        if error.errno != errno.ENAMETOOLONG:
            raise
        shown = str(error.filename)[:_NAME_SHOWN]
        return _refused(f"{shown}... names no file: {error.strerror}; correct the argument.", _BAD)


def _refused(why: str, code: int) -> int:
    """Print an error as one short line, and return its exit code."""
    line = printable(" ".join(filter(None, map(str.strip, why.splitlines()))))
    line = shortened(line, _LONGEST)
    print(f"lbmtune: {line}", file=sys.stderr)
    return code
