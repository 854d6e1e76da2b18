"""Folders for temporary files. Those that killed processes left are removed when the next one is made."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lbmtune.errors import InputError

_PREFIX, _OWNER = "lbmtune-", "pid"
_held: dict[Path, int] = {}
"""The open file in each folder of this process. Its lock ends with the process, also in another container."""


def scratch_folder() -> Path:
    """Create a temporary folder for one run. Raises InputError."""
    try:
        root = Path(tempfile.gettempdir())
        for orphan in filter(_is_orphan, root.glob(f"{_PREFIX}*")):
            shutil.rmtree(orphan, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        _own(folder)
    except OSError as error:
        raise InputError(f"no folder for temporary files: {error.strerror}; set TMPDIR to one with room.") from error
    return folder


def remove_scratch(folder: Path) -> None:
    """Remove a temporary folder of this process."""
    shutil.rmtree(folder, ignore_errors=True)
    if (handle := _held.pop(folder, None)) is not None:
        os.close(handle)


@contextmanager
def scratch() -> Iterator[Path]:
    """Provide a temporary folder while the block runs. Raises InputError."""
    folder = scratch_folder()
    try:
        yield folder
    finally:
        remove_scratch(folder)


def _own(folder: Path) -> None:
    """Lock a file with this process's number; it gets its name when it is locked, so that no orphan is seen in it."""
    unnamed = folder / f".{_OWNER}"
    _held[folder] = os.open(unnamed, os.O_RDWR | os.O_CREAT)
    os.write(_held[folder], str(os.getpid()).encode())
    with suppress(OSError):  # a file system without locks: nobody removes the folder but its owner
        fcntl.flock(_held[folder], fcntl.LOCK_EX)
        unnamed.rename(folder / _OWNER)


def _is_orphan(folder: Path) -> bool:
    """Return whether the process that made a folder has ended."""
    try:
        if folder.lstat().st_uid != os.geteuid():
            return False
        handle = os.open(folder / _OWNER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False  # not a folder of this kind, or gone meanwhile
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True
