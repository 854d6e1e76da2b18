"""Read files that a user names: of a pipe nobody may ever write the other end, and a device has no end."""

import errno
import os
import stat
from pathlib import Path


def regular_bytes(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises OSError, also for anything else than a regular file."""
    # not blocking: opening a pipe would wait for its writer
    with os.fdopen(_opened(path), "rb") as file:
        return file.read()


def _opened(path: Path) -> int:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return handle
    os.close(handle)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no regular file", str(path))
