"""The command line: the only place that parses arguments and prints."""

import errno
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from lbmtune.cli.app import VERBS, command
from lbmtune.cli.format.usage import UsageError, sentence
from lbmtune.cli.signals import like_ctrl_c
from lbmtune.errors import InputError, LbmtuneError

_UNREAD = 141
"""The exit code that a shell reports of a program ended by SIGPIPE (13): 128 more."""

_NAME_SHOWN = 60
"""Letters of a name that is too long for a file."""


class _Output(FileIO):
    """Standard output that ends the program quietly if its reader is gone.

    The signal SIGPIPE itself would also end the program if a worker died while it is written to.
    """

    def write(self, data: Any, /) -> int:
        """Write data. Raises SystemExit."""
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # for what is left to write
            raise SystemExit(_UNREAD) from None


class _Notes(logging.Handler):
    """Prints remarks and progress of the package on standard error, a warning once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._warned: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        text = record.getMessage()
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

    0 done, 1 nothing valid found, 2 bad input, 3 device unavailable, 130 interrupted, 141 nobody reads the output.
    """
    # the search's matrices are small: threads of NumPy's would compete with the compilers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    original = sys.__stdout__
    if original and sys.stdout is original and not original.isatty():
        original.flush()  # what a program printed before it called this
        unbuffered = _Output(original.fileno(), "w", closefd=False)
        sys.stdout = TextIOWrapper(BufferedWriter(unbuffered), encoding=original.encoding, errors=original.errors)
    try:
        with like_ctrl_c(), notes_on_stderr():
            _run(list(sys.argv[1:] if arguments is None else arguments))
    finally:
        sys.stdout.flush()


def _run(arguments: list[str]) -> None:
    try:
        # not standalone: there Typer prints errors itself, in several lines
        sys.exit(command()(args=arguments, prog_name="lbmtune", standalone_mode=False) or 0)
    except UsageError as error:
        if not arguments:
            error.show()  # the help
        else:
            verb = arguments[0] if arguments[0] in VERBS else ""
            print(f"lbmtune: {sentence(error, verb)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except LbmtuneError as error:
        print(f"lbmtune: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        shown = str(error.filename)[:_NAME_SHOWN]
        print(f"lbmtune: {shown}... names no file: {error.strerror}; correct the argument.", file=sys.stderr)
        sys.exit(InputError.exit_code)
