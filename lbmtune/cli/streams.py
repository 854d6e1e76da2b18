"""Standard output and standard error, of which either may be closed or full, or read by nobody.

What nobody reads is dropped, so that the work goes on; facts that find no room are an error.
"""

import os
import select
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from lbmtune.errors import InputError

_LAST_STANDARD = 2


class _Stream(FileIO):
    """A standard stream of the process. facts: whether what does not fit is missed."""

    def __init__(self, number: int, *, facts: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self._facts, self._lost = facts, False

    def write(self, data: Any, /) -> int:
        """Write data, or drop it if an earlier part was lost. Raises InputError if facts find no room."""
        while not self._lost:
            try:
                if (written := super().write(data)) is not None:
                    return written
                select.select([], [self], [])  # a pipe that does not wait by itself
            except OSError as error:
                self._lost = True
                if self._facts and not isinstance(error, BrokenPipeError):
                    raise InputError(
                        f"cannot write standard output: {error.strerror}; send it to another place."
                    ) from error
        return len(data)


def secure() -> None:
    """Replace the standard streams of the process, unless a program that calls this has put others in their place."""
    # a number that is not in use would go to the next file that is opened, and what is printed into that file
    while (number := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:
        os.set_inheritable(number, True)
    os.close(number)
    for name, facts in (("stdout", True), ("stderr", False)):
        original, now = getattr(sys, f"__{name}__"), getattr(sys, name)
        if now is None:
            setattr(sys, name, TextIOWrapper(FileIO(os.devnull, "w"), "utf-8"))
        elif now is original:
            raw = _Stream(original.fileno(), facts=facts)
            # names of files need not be text of this encoding
            setattr(
                sys,
                name,
                TextIOWrapper(
                    BufferedWriter(raw),
                    original.encoding,
                    "backslashreplace",
                    line_buffering=original.line_buffering,
                    write_through=original.write_through,
                ),
            )
            with suppress(OSError):
                original.flush()  # what a program printed before it called this
