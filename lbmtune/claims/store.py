"""Read and write the folder of a run of claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from lbmtune.errors import InputError
from lbmtune.records import store
from lbmtune.records.claims import CLAIMS_SCHEMA, Claims, ClaimsHeader, Group
from lbmtune.records.store import append_line, drop_torn_line, read_lines, write_record
from lbmtune.regular_file import regular_bytes

T = TypeVar("T")
RESULTS, GROUPS, PAGE = "claims.json", "groups.jsonl", "claims.html"


def append_group(folder: Path, group: Group) -> None:
    """Append a group and flush it to disk. Raises InputError if the disk is full or the folder is gone."""
    append_line(folder / GROUPS, group)


def read_groups(folder: Path) -> tuple[Group, ...]:
    """Return the measured groups; a last line torn by a crash is truncated. Raises InputError."""
    drop_torn_line(folder / GROUPS)
    return tuple(read_lines(folder / GROUPS, Group))


def write_claims(folder: Path, claims: Claims) -> None:
    """Replace the results."""
    write_record(folder / RESULTS, claims)


@dataclass(frozen=True)
class _Headed:
    """The part of the results that all schemas share."""

    header: ClaimsHeader


def read_claims(folder: Path) -> Claims:
    """Return the results in a folder. Raises InputError."""
    return decoded(_content(folder), folder / RESULTS)


def read_claims_header(folder: Path) -> ClaimsHeader:
    """Return the header of the results in a folder, of any version. Raises InputError."""
    return _decoded(_content(folder), folder / RESULTS, _Headed).header


def decoded(content: bytes, path: Path) -> Claims:
    """Return the results in the content of a file. path: for messages. Raises InputError."""
    schema = _decoded(content, path, _Headed).header.schema
    if schema > CLAIMS_SCHEMA:
        raise InputError(f"{path} has schema {schema}, this version reads up to {CLAIMS_SCHEMA}; update lbmtune.")
    if schema < CLAIMS_SCHEMA:
        remedy = "lbmtune reproduce --resume on its folder keeps what was measured and writes it anew"
        raise InputError(f"{path} has schema {schema}, this version reads {CLAIMS_SCHEMA}; {remedy}.")
    return _decoded(content, path, Claims)


def _content(folder: Path) -> bytes:
    try:
        return regular_bytes(folder / RESULTS)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"no claims at {folder}; give the folder that lbmtune reproduce wrote.") from None
    except OSError as error:
        raise InputError(f"cannot read {folder / RESULTS}: {error.strerror}; see to the folder.") from error


def _decoded(content: bytes, path: Path, kind: type[T]) -> T:
    try:
        return store.decoded(content, kind)
    except ValueError as error:
        raise InputError(f"{path} is damaged: {error}; restore it or run lbmtune reproduce again.") from error


def claims_folder(reference: str, out: Path) -> Path | None:
    """Return the folder of a run of claims by its path or by its name below `out`; None if there is none."""
    return next((folder for folder in (Path(reference), out / reference) if (folder / RESULTS).is_file()), None)


def of_documents(groups: Sequence[Group], names: Sequence[str]) -> tuple[Group, ...]:
    """Return the last group of each document, series and domain, in the order of their beginning."""
    latest = {(g.document, g.series, g.case.domain): g for g in groups if g.document in names}
    return tuple(latest.values())
