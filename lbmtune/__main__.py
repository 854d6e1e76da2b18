"""`python -m lbmtune`, and the command lbmtune."""

import os
import signal
import sys

_INTERRUPTED = 130
"""The exit code that a shell reports of a program ended by SIGINT (2): 128 more."""


def main() -> None:
    """Run the command line and exit. Until its modules are loaded, which takes a second, Ctrl-C ends it at once."""
    try:
        if (before := signal.getsignal(signal.SIGINT)) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))  # imports may swallow an exception
        from lbmtune.cli import main as run

        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    finally:
        # CPython notes that a text which it executes was interrupted, as those of data classes are, until it executes
        # another one, and ends with `-m` by SIGINT, although the interruption was dealt with
        exec("")


if __name__ == "__main__":
    main()
