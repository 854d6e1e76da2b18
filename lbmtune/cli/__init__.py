"""The command line: the only place that parses arguments and prints."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs lbmtune and exits: 0 done, 1 nothing valid found, 2 bad input, 3 device unavailable, 130 interrupted."""
    from lbmtune.cli.app import command
    from lbmtune.errors import LbmtuneError

    # the search's matrices are small: threads of NumPy's would wait for each other beside the compilers
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        command()(args=list(arguments) if arguments is not None else None, prog_name="lbmtune")
    except LbmtuneError as error:
        print(f"lbmtune: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
