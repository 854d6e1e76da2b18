"""Locks between processes: one study per folder, one run per device."""

import errno
import fcntl
import hashlib
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.records import Environment

LOCKS_VARIABLE = "LBMTUNE_LOCKS"
"""Environment variable: runs for which it differs do not exclude each other."""
_SHARED = Path("/tmp")  # whatever TMPDIR a user has
_SHOWN = 100
"""Letters of a command."""


_LOCK = ".lock"
"""Lock file of a study's folder."""


def is_worked_on(folder: Path) -> bool:
    """Return whether a process of this host holds the lock of a study's folder; nothing is locked to find out."""
    try:
        handle = os.open(folder / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _locker(handle) != 0
    finally:
        os.close(handle)


def folder_lock(folder: Path) -> AbstractContextManager[None]:
    """Lock a study's folder. Raises InputError if another process holds the lock."""
    return _locked(folder / _LOCK, f"another process works on the study in {folder}; wait for it or stop it.")


@contextmanager
def device_lock(environment: Environment) -> Iterator[None]:
    """Lock a device of this host against other runs, whatever their user and cache; the lock ends with the process.

    The cores of a host are one device. Raises InputError, with the holder's number and command, if it is taken.
    """
    device = "cpu" if BACKENDS[environment.backend].shares_host else environment.device_id
    named = f"{os.environ.get(LOCKS_VARIABLE, '')}\0{device}"
    name = f"lbmtune-device-{hashlib.sha256(named.encode()).hexdigest()[:32]}"
    # containers and batch jobs have either a network or a folder for temporary files in common
    with _listening(name, environment.device), _holding(_SHARED / name, environment.device):
        yield


@contextmanager
def device_locks(environments: Iterable[Environment]) -> Iterator[None]:
    """Lock several devices of this host (`device_lock`)."""
    with ExitStack() as held:
        for environment in environments:
            held.enter_context(device_lock(environment))
        yield


@contextmanager
def _listening(name: str, device: str) -> Iterator[None]:
    """Hold a name of an abstract socket, which is no file. Raises InputError if it is taken."""
    with socket.socket(socket.AF_UNIX) as lock:
        try:
            lock.bind(f"\0{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise _in_use(device, _listener(name)) from None
        lock.listen()
        yield


@contextmanager
def _holding(path: Path, device: str) -> Iterator[None]:
    """Hold a lock of a file that every user can open. Raises InputError if it is taken."""
    with ExitStack() as held:
        with suppress(OSError):  # where there is no such folder, the socket has to do
            # others' files in it cannot be opened with O_CREAT
            options = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | (0 if path.exists() else os.O_CREAT)
            handle = os.open(path, options)
            held.callback(os.close, handle)
            _lock_file(handle, device)
            held.callback(_remove, path)
            os.fchmod(handle, 0o644)
        yield


def _lock_file(handle: int, device: str) -> None:
    """Lock an open file. Raises InputError if another process has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(device, _locker(handle)) from None
    if not os.fstat(handle).st_nlink:  # its last holder has removed it meanwhile, and another may have a new one
        raise _in_use(device, 0)


def _remove(path: Path) -> None:
    with suppress(OSError):  # another user's
        path.unlink()


def _in_use(device: str, number: int) -> InputError:
    """Return the error for a device that a process has; 0: of a process that is not visible here."""
    holder = "another process"
    with suppress(OSError):
        words = Path(f"/proc/{number}/cmdline").read_bytes().decode(errors="replace").split("\0")
        holder = f"process {number} ({' '.join(words).strip()[:_SHOWN]})"
    return InputError(f"{device} is in use by {holder}; wait for it, or choose another --device.")


def _listener(name: str) -> int:
    """Return the number of the process that listens to a name; 0 if it is unknown."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.setblocking(False)
        asking.connect(f"\0{name}")
        number, *_ = struct.unpack("3i", asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return int(number)
    return 0


def _locker(handle: int) -> int:
    """Return the number of the process that has locked an open file; 0 if it is unknown. Source: proc(5), locks."""
    inode = os.fstat(handle).st_ino
    locks = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return next((int(words[4]) for words in locks if words[1] == "FLOCK" and words[5].endswith(f":{inode}")), 0)


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
