"""Locks between processes: one study per folder, one run per device."""

import errno
import fcntl
import hashlib
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.records import Environment

LOCKS_VARIABLE = "LBMTUNE_LOCKS"
"""Environment variable: runs for which it differs do not exclude each other."""
_SHOWN = 100
"""Letters of a command."""


def folder_lock(folder: Path) -> AbstractContextManager[None]:
    """Lock a study's folder. Raises InputError if another process holds the lock."""
    return _locked(folder / ".lock", f"another process works on the study in {folder}; wait for it or stop it.")


@contextmanager
def device_lock(environment: Environment) -> Iterator[None]:
    """Lock a device of this host against other runs, whatever their user and cache; the lock ends with the process.

    The cores of a host are one device. Raises InputError, with the holder's number and command, if it is taken.
    """
    device = "cpu" if BACKENDS[environment.backend].shares_host else environment.device_id
    named = f"{os.environ.get(LOCKS_VARIABLE, '')}\0{device}"
    name = b"\0lbmtune " + hashlib.sha256(named.encode()).hexdigest()[:32].encode()  # a name beside all files
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(name)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise InputError(
                f"{environment.device} is in use by {_holder(name)}; wait for it, or choose another --device."
            ) from None
        lock.listen()
        yield


def _holder(name: bytes) -> str:
    """Return the number and the command of the process that listens to a name, as far as they are visible."""
    try:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.setblocking(False)
            asking.connect(name)
            number, *_ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        words = Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return "another process"
    return f"process {number} ({' '.join(words).strip()[:_SHOWN]})"


@contextmanager
def _locked(path: Path, taken: str) -> Iterator[None]:
    """Hold a lock file while the block runs; it ends with the process.

    Raises InputError with the sentence `taken` if another process holds it, and if it cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another folder.") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(taken) from None
        yield
    finally:
        os.close(handle)
