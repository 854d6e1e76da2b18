"""Read and write study folders, and find the user's cache. Functions that write return when the data is on disk."""

import atexit
import gzip
import os
import stat
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from lbmtune.errors import InputError, LbmtuneError, given_path
from lbmtune.records import SCHEMA_VERSION, Trial
from lbmtune.records.header import StudyHeader
from lbmtune.records.legacy.configurations import config_of
from lbmtune.records.legacy.spaces import current_tables
from lbmtune.records.parts import PartsTrial
from lbmtune.records.profile import Profile
from lbmtune.records.spec import tables
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER, PARTS, PROFILE, TRIALS, replace_file, sync_folder
from lbmtune.regular_file import regular_bytes
from lbmtune.scratch import remove_scratch, scratch_folder

CACHE_VARIABLE = "LBMTUNE_CACHE"
CODE = "cpu"
"""The folder of the cache that holds compiled code."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
FAMILIES_SINCE = 4
_WHOLE_TIME_SINCE = 5
"""Schema from which on the time of a budget is that of the whole study; it was that of the trials."""
"""Schema of the first studies whose configurations have families."""
T = TypeVar("T")


def write_record(path: Path, record: object) -> None:
    """Write a record as indented JSON, the whole file or nothing. Raises InputError."""
    replace_file(path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def write_header(folder: Path, header: StudyHeader) -> None:
    """Write the header of a study into its folder."""
    write_record(folder / HEADER, header)
    sync_folder(folder.parent)  # which may have got its name just now


def append_trial(folder: Path, trial: Trial) -> None:
    """Append a trial and flush it to disk. Raises InputError."""
    append_line(folder / TRIALS, trial)


def append_line(path: Path, record: object) -> None:
    """Append a record to a file of lines and flush it to disk. Raises InputError."""
    line = msgspec.json.encode(record) + b"\n"
    try:
        with path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        if path.stat().st_size == len(line):  # a new file
            sync_folder(path.parent)
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; see to the folder, and go on with --resume."
        ) from error


def holds_study(folder: Path) -> bool:
    """Return whether a folder holds a study. Raises InputError for trials of which nobody knows the case."""
    if given_path(folder / HEADER).exists():
        return True
    for name in (TRIALS, f"{TRIALS}.gz"):
        if (folder / name).exists():
            raise InputError(
                f"{folder} holds {name} without {HEADER}, which says of what study these trials are; restore it, or "
                "choose another folder."
            )
    return False


def read_header(folder: Path) -> StudyHeader:
    """Return the header of the study of a folder as it was written. Raises InputError."""
    holds_study(folder)
    header = _decode(folder / HEADER, StudyHeader)
    if header.schema > SCHEMA_VERSION:
        raise InputError(
            f"{folder / HEADER} has schema {header.schema}, this version reads up to {SCHEMA_VERSION}; update lbmtune."
        )
    return header


def read_study(folder: Path) -> StudyRecord:
    """Return the study of a folder, without a last line that a crash cut short. Raises InputError."""
    header = read_header(folder)
    # the last entry of each number: finals are appended after the first measurement
    latest = {trial.number: trial for trial in read_lines(folder / TRIALS, Trial)}
    trials = tuple(latest[number] for number in sorted(latest))
    if header.schema < FAMILIES_SINCE:
        header, trials = current_header(header), tuple(map(_current_trial, trials))
    if header.schema < _WHOLE_TIME_SINCE:
        budget = replace(header.spec.budget, seconds=0.0, search_seconds=header.spec.budget.seconds)
        header = replace(header, spec=replace(header.spec, budget=budget), schema=_WHOLE_TIME_SINCE)
    on_parts = tuple(read_lines(folder / PARTS, PartsTrial)) if header.parts else ()
    return StudyRecord(header=header, trials=trials, on_parts=on_parts)


def _current_trial(trial: Trial) -> Trial:
    config = config_of(trial.config)
    return replace(trial, config=config.flat(), key=config.key)


def current_header(header: StudyHeader) -> StudyHeader:
    """Return the header of a study of an earlier schema with its spaces as they are written today."""
    axes: dict[str, Any] = {}
    for backend, given in header.spec.axes.items():
        found = tuple(one for table in tables(given) for one in current_tables(table, backend))
        axes[backend] = found[0] if len(found) == 1 and isinstance(given, dict) else found
    return replace(header, spec=replace(header.spec, axes=axes), schema=FAMILIES_SINCE)


def read_profile(folder: Path, key: str) -> Profile | None:
    """Return the profile in the folder of a study if it is of the kernel with this key. Raises InputError."""
    path = folder / PROFILE
    if not path.exists():
        return None
    try:
        found = decoded(regular_bytes(path), Profile)
    except ValueError as error:
        raise InputError(f"{path} is no profile ({error}); profile the winner again, or remove the file.") from None
    return found if found.key == key else None


def drop_torn_line(path: Path) -> None:
    """Cut an unfinished last line off before the next append; unpack a compressed file first."""
    if not path.exists() and (content := _content(path)):
        replace_file(path, content)
    if path.exists():
        content = regular_bytes(path)
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(path, end)


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """Return the records of a file of lines, without a last one that a crash cut short. Raises InputError."""
    found = []
    for number, line in enumerate(_content(path).split(b"\n")[:-1], 1):
        try:
            found.append(decoded(line, kind))
        except ValueError as error:
            raise InputError(f"{path}, line {number} is damaged ({error}); delete that line and resume.") from error
    return found


def _content(path: Path) -> bytes:
    """Return the content of a file or its compressed form, as of recorded sets; empty if neither exists."""
    packed = path.with_name(f"{path.name}.gz")
    try:
        if path.exists():
            return regular_bytes(path)
        return gzip.decompress(regular_bytes(packed)) if packed.exists() else b""
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{packed} is damaged: {error}; restore it or start a new study.") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; see to the folder.") from error


def _decode(path: Path, kind: type[T]) -> T:
    try:
        return decoded(regular_bytes(path), kind)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"no study at {path.parent}; give the folder that lbmtune study wrote.") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; see to the folder.") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; restore it or start a new study in another folder.") from error


def decoded(content: bytes, kind: type[T]) -> T:
    """Return the record that a JSON text holds. Raises ValueError, which says what is damaged, and nothing else."""
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except LbmtuneError as error:  # of a value that its record refuses
        raise ValueError(str(error)) from error


def make_cache(*, writable: bool = False) -> None:
    """Make the cache if it is missing, for this user alone: compiled code that lies there is run.

    Raises InputError if it cannot be made or, for `writable`, written, and if others own it or may write there.
    """
    root = cache_folder("")
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if writable:
            tempfile.TemporaryFile(dir=root).close()
    except OSError as error:
        raise InputError(
            f"cannot write {root} ({error.strerror}); set {CACHE_VARIABLE} to a folder for compiled kernels."
        ) from error
    for folder in map(cache_folder, ("", CODE, f"{CODE}/__pycache__")):
        if folder.exists() and (folder.stat().st_uid != os.geteuid() or folder.stat().st_mode & _OTHERS_WRITE):
            raise InputError(
                f"others may write {folder}, and code that lies there is run; make it yours alone, or set "
                f"{CACHE_VARIABLE} to such a folder."
            )


def provide_cache() -> str:
    """Give this process and its workers a temporary cache if the user's cannot be used. Returns a remark, or ''."""
    try:
        make_cache(writable=True)
        return ""
    except InputError as error:
        reason = str(error).partition(";")[0]
    for_now = scratch_folder()
    atexit.register(remove_scratch, for_now)
    os.environ[CACHE_VARIABLE] = str(for_now)
    return (
        f"{reason}: compiled kernels and rankings of this run are not kept; set {CACHE_VARIABLE} to a folder that you "
        "alone can write."
    )


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache, below LBMTUNE_CACHE if it is set."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("lbmtune")) / name
