"""Write files whole or not at all, and what is no file as it comes."""

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from lbmtune.errors import InputError

HEADER, TRIALS, PARTS, PROFILE = "study.json", "trials.jsonl", "parts.jsonl", "profile.json"
"""The records in the folder of a study."""
_RECORDS = frozenset((HEADER, TRIALS, f"{TRIALS}.gz", PARTS, f"{PARTS}.gz", PROFILE))
_ELSEWHERE = "choose another output folder"
_UNFINISHED = ".unfinished"
"""How the names of hidden files end that are not written to their end yet."""


def write_atomically(path: Path, content: bytes, instead: str = _ELSEWHERE) -> None:
    """Write a whole file or nothing; a pipe or a device is written into.

    Raises InputError, which ends with `instead`, also if the file is a record of a study.
    """
    check_no_record(path, instead)
    if path.exists() and not path.is_file() and not path.is_dir():
        _write_into(path, content, instead)
    else:
        replace_file(Path(os.path.realpath(path)), content, instead, named=path)


def check_no_record(path: Path, instead: str = _ELSEWHERE) -> None:
    """Raise InputError, which ends with `instead`, if a file is a record in the folder of a study."""
    file = Path(os.path.realpath(path))
    if file.name in _RECORDS and (file.parent / HEADER).exists():
        raise InputError(f"cannot write {path}: it is a record of the study in its folder; {instead}.")


def _write_into(path: Path, content: bytes, instead: str) -> None:
    try:
        # not blocking: opening a pipe would wait for its reader
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(handle, True)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; {instead}.") from error


def replace_file(path: Path, content: bytes, instead: str = _ELSEWHERE, *, named: Path | None = None) -> None:
    """Write a whole file or nothing, whatever is there. Raises InputError, with `named` and `instead` at its end."""
    unfinished = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            prefix=f".{path.name}.", suffix=_UNFINISHED, dir=path.parent, delete=False
        ) as f:
            unfinished = Path(f.name)
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        unfinished.chmod(0o644)
        unfinished.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise InputError(f"cannot write {named or path}: {error.strerror}; {instead}.") from error
    finally:
        if unfinished:
            unfinished.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what killed processes have not written to its end. Nothing else may write into the folder meanwhile."""
    for path in folder.glob(f".*{_UNFINISHED}"):
        path.unlink(missing_ok=True)


def check_writable(folder: Path, path: Path | None = None, instead: str = _ELSEWHERE) -> None:
    """Check that a folder can be written, and leave no new folder behind.

    Raises InputError, with `path`, by default the folder, and `instead` at its end.
    """
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"cannot write {path or folder}: {error.strerror}; {instead}.") from error
    finally:
        for one in new:
            with suppress(OSError):
                one.rmdir()


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, or a power cut may take new ones. Raises OSError."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EACCES):  # file systems that cannot, folders that hide their names
            raise
