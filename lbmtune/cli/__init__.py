"""The command line: the only place that parses arguments and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

_UNREAD = 141
"""What a shell says of a program that SIGPIPE (13) has ended: 128 more."""


class _Output(FileIO):
    """Standard output. Where nobody reads on, the program ends, as others do by SIGPIPE, and says nothing of it.

    The signal itself would end it, too, where a worker dies to which it is just writing.
    """

    def write(self, data: Any, /) -> int:
        """Raises SystemExit."""
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())  # for what is left to write
            raise SystemExit(_UNREAD) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs lbmtune and exits.

    0 done, 1 nothing valid found, 2 bad input, 3 device unavailable, 130 interrupted, 141 nobody reads the output.
    """
    from lbmtune.cli.app import command
    from lbmtune.cli.format.usage import UsageError, sentence
    from lbmtune.errors import LbmtuneError

    # the search's matrices are small: threads of NumPy's would wait for each other beside the compilers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    given = sys.__stdout__
    if given and sys.stdout is given and not given.isatty():
        given.flush()  # what a program printed before it called this
        unbuffered = _Output(given.fileno(), "w", closefd=False)
        sys.stdout = TextIOWrapper(BufferedWriter(unbuffered), encoding=given.encoding, errors=given.errors)
    asked = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # not standalone: there Typer prints what is wrong with arguments itself, in several lines
        sys.exit(command()(args=asked, prog_name="lbmtune", standalone_mode=False) or 0)
    except UsageError as error:
        if not asked:
            error.show()  # the help
        else:
            verb = asked[0] if asked[0] in command().commands else ""
            print(f"lbmtune: {sentence(error, verb)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except LbmtuneError as error:
        print(f"lbmtune: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        sys.stdout.flush()
