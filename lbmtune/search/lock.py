"""Locks between processes: one study per folder, one study per device."""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from lbmtune.errors import InputError
from lbmtune.records import Environment
from lbmtune.records.store import cache_folder


def folder_lock(folder: Path) -> AbstractContextManager[None]:
    """Lock a study's folder. Raises InputError if another process holds the lock."""
    return _locked(folder / ".lock", f"another process works on the study in {folder}; wait for it or stop it.")


def device_lock(environment: Environment) -> AbstractContextManager[None]:
    """Lock a device against other studies of this user. Raises InputError if one holds the lock."""
    name = hashlib.sha256(f"{environment.backend} {environment.device_id}".encode()).hexdigest()[:16]
    taken = f"another study runs on {environment.device}; wait for it, or choose another --device."
    return _locked(cache_folder("locks") / name, taken)


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
