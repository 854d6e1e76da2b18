"""Measure output on the host: density and velocity are copied, written to a file and compared."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lbmtune.errors import InputError

Array = Any
_AT_ONCE = 1 << 15
"""Numbers of a residual that are compared at once: temporary arrays of them stay in a cache."""


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


def residual(velocity: Array, before: Array) -> float:
    """Return the sum of absolute changes of a velocity over that of its absolute values; infinite for a flow at rest.

    The sums are over all components, shape (n,). Source: de Oliveira, Lugarini, Franco 2019, equation 7.
    """
    change = size = 0.0
    for start in range(0, len(velocity), _AT_ONCE):
        now, then = (array[start : start + _AT_ONCE] for array in (velocity, before))
        change += float(np.abs(now - then).sum(dtype=np.float64))
        size += float(np.abs(now).sum(dtype=np.float64))
    return _relative(change, size)


def residual_of_threads(velocity: Array, before: Array, threads: int, pinning: str) -> float:
    """Return the residual, computed by the threads of a kernel of a CPU."""
    from lbmtune.backend.cpu.residual import sums_of_changes  # here: Numba takes its time to come

    return _relative(*sums_of_changes(velocity, before, threads, pinning))


def _relative(change: float, size: float) -> float:
    return change / size if size else float("inf")


def to_host(source: Array, target: Array) -> None:
    """Copy contiguous elements from the device to the host and wait for them."""
    if isinstance(source, np.ndarray):
        target[...] = source
    else:
        source.get(out=target)
