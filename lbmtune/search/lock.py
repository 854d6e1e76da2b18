"""Locks between processes: one study to a folder, one study to a device."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lbmtune.errors import InputError
from lbmtune.records import Environment
from lbmtune.records.caches import cache_folder

_FOLDER_LOCK = ".lock"


@contextmanager
def held(path: Path, taken: str) -> Iterator[None]:
    """Holds a lock file while the block runs; it ends with the process, however that ends.

    Raises InputError with the sentence `taken` where another process holds it, or where it cannot be made.
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


@contextmanager
def folder_held(folder: Path) -> Iterator[None]:
    """No other process works on the study in this folder. Raises InputError."""
    with held(folder / _FOLDER_LOCK, f"another process works on the study in {folder}; wait for it, or stop it first."):
        yield


@contextmanager
def device_held(environment: Environment) -> Iterator[None]:
    """No other study of this user runs on the device: it would disturb the samples. Raises InputError."""
    name = hashlib.sha256(f"{environment.backend} {environment.device_id}".encode()).hexdigest()[:16]
    taken = f"another study runs on {environment.device}; wait for it, or choose another --device."
    with held(cache_folder("locks") / name, taken):
        yield
