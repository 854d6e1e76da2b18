"""Read and write study folders, and find the user's cache. Functions that write return when the data is on disk."""

import gzip
import os
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import platformdirs

from lbmtune.errors import InputError
from lbmtune.records import SCHEMA_VERSION, Trial
from lbmtune.records.legacy import config_of
from lbmtune.records.legacy_spaces import current_tables
from lbmtune.records.study import StudyHeader, StudyRecord, tables

HEADER, TRIALS = "study.json", "trials.jsonl"
CACHE_VARIABLE = "LBMTUNE_CACHE"
FAMILIES_SINCE = 4
"""Schema of the first studies whose configurations have families."""
T = TypeVar("T")


def write_atomically(path: Path, content: bytes, instead: str = "choose another output folder") -> None:
    """Write a whole file or nothing. Raises InputError, which ends with `instead`."""
    unfinished = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            unfinished = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.chmod(0o644)
        unfinished.replace(path)
    except OSError as error:
        if unfinished:
            unfinished.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror}; {instead}.") from error


def write_record(path: Path, record: object) -> None:
    """Write a record as indented JSON, the whole file or nothing. Raises InputError."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")


def check_writable(folder: Path) -> None:
    """Check that a folder can be written, and leave no new folder behind. Raises InputError."""
    new = not folder.exists()
    write_atomically(folder / ".writable", b"")
    (folder / ".writable").unlink()
    if new:
        folder.rmdir()


def write_header(folder: Path, header: StudyHeader) -> None:
    """Write the header of a study into its folder."""
    write_record(folder / HEADER, header)


def append_trial(folder: Path, trial: Trial) -> None:
    """Append a trial and flush it to disk. Raises InputError."""
    append_line(folder / TRIALS, trial)


def append_line(path: Path, record: object) -> None:
    """Append a record to a file of lines and flush it to disk. Raises InputError."""
    try:
        with path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}; see to the folder, and go on with --resume."
        ) from error


def read_study(folder: Path) -> StudyRecord:
    """Return the study of a folder, without a last line that a crash cut short. Raises InputError."""
    header = _decode(folder / HEADER, StudyHeader)
    if header.schema > SCHEMA_VERSION:
        raise InputError(
            f"{folder / HEADER} has schema {header.schema}, this version reads up to {SCHEMA_VERSION}; update lbmtune."
        )
    # the last entry of each number: finals are appended after the first measurement
    latest = {trial.number: trial for trial in read_lines(folder / TRIALS, Trial)}
    trials = tuple(latest[number] for number in sorted(latest))
    if header.schema < FAMILIES_SINCE:
        return StudyRecord(header=current_header(header), trials=tuple(map(_current_trial, trials)))
    return StudyRecord(header=header, trials=trials)


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


def drop_torn_line(path: Path) -> None:
    """Cut an unfinished last line off before the next append; unpack a compressed file first."""
    if not path.exists() and (content := _content(path)):
        write_atomically(path, content)
    if path.exists():
        content = path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.truncate(path, end)


def read_lines(path: Path, kind: type[T]) -> list[T]:
    """Return the records of a file of lines, without a last one that a crash cut short. Raises InputError."""
    found = []
    for number, line in enumerate(_content(path).split(b"\n")[:-1], 1):
        try:
            found.append(msgspec.json.decode(line, type=kind))
        except msgspec.MsgspecError as error:
            raise InputError(f"{path}, line {number} is damaged ({error}); delete that line and resume.") from error
    return found


def _content(path: Path) -> bytes:
    """Return the content of a file or its compressed form, as of recorded sets; empty if neither exists."""
    packed = path.with_name(f"{path.name}.gz")
    try:
        if path.exists():
            return path.read_bytes()
        return gzip.decompress(packed.read_bytes()) if packed.exists() else b""
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{packed} is damaged: {error}; restore it or start a new study.") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; see to the folder.") from error


def _decode(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"no study at {path.parent}; give the folder that lbmtune study wrote.") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; see to the folder.") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is damaged: {error}; restore it or start a new study.") from error


def cache_folder(name: str) -> Path:
    """Return a folder of the user's cache, below LBMTUNE_CACHE if it is set."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("lbmtune")) / name
