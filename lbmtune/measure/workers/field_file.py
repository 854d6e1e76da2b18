"""A file of density and velocity on a local disk, whose writing is part of the measured time."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from lbmtune.errors import InputError

Array = Any


class FieldFile:
    """A file that is written anew each time: raw numbers of the fields one after the other, in the compute precision.

    The file has no name, so that it goes with its process whatever ends that. `write` returns when the numbers are on
    the disk (fsync), so that its time is that of the disk and not of memory that the system writes from later.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Create the file. folder: None: the folder for temporary files. Raises InputError."""
        self.folder = folder or Path(tempfile.gettempdir())
        try:
            self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failed("create a file", error) from error

    def write(self, fields: Array) -> None:
        """Replace the content. fields: a contiguous NumPy array. Raises InputError, for a full disk too."""
        left = memoryview(fields).cast("B")
        try:
            self._file.seek(0)
            self._file.truncate()
            while left:  # the system writes up to 2 GiB at once
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._failed(f"write {fields.nbytes / 1e6:.1f} MB of density and velocity", error) from error

    def content(self) -> bytes:
        """Return what was written last."""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _failed(self, what: str, error: OSError) -> InputError:
        return InputError(
            f"cannot {what} in {self.folder}: {error.strerror}; choose a folder with room by --scratch or TMPDIR."
        )
