"""Reading and writing the folder of a run of claims."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lbmtune.errors import InputError
from lbmtune.records import SCHEMA_VERSION
from lbmtune.records.claims import Claims, Group
from lbmtune.records.store import write_atomically

RESULTS, GROUPS, PAGE = "claims.json", "groups.jsonl", "claims.html"


def append_group(folder: Path, group: Group) -> None:
    """Adds one group and flushes it to disk."""
    with (folder / GROUPS).open("ab") as file:
        file.write(msgspec.json.encode(group) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read_groups(folder: Path) -> tuple[Group, ...]:
    """The groups that were measured; a last line cut short by a crash is cut off. Raises InputError."""
    path = folder / GROUPS
    if not path.exists():
        return ()
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return tuple(_group(path, n, line) for n, line in enumerate(content[:end].splitlines(), 1))


def _group(path: Path, number: int, line: bytes) -> Group:
    try:
        return msgspec.json.decode(line, type=Group)
    except msgspec.MsgspecError as error:
        raise InputError(f"{path}, line {number} is damaged ({error}); delete that line and resume.") from error


def write_claims(folder: Path, claims: Claims) -> None:
    """Writes the results anew."""
    write_atomically(folder / RESULTS, msgspec.json.format(msgspec.json.encode(claims)) + b"\n")


def read_claims(folder: Path) -> Claims:
    """The results in a folder. Raises InputError."""
    path = folder / RESULTS
    try:
        claims = msgspec.json.decode(path.read_bytes(), type=Claims)
    except FileNotFoundError:
        raise InputError(f"no claims at {folder}; give the folder that lbmtune claims wrote.") from None
    except msgspec.MsgspecError as error:
        raise InputError(f"{path} is damaged: {error}; restore it or run lbmtune claims again.") from error
    if claims.header.schema > SCHEMA_VERSION:
        raise InputError(f"{path} has schema {claims.header.schema}, this version reads up to {SCHEMA_VERSION}.")
    return claims


def claims_folder(reference: str, out: Path) -> Path | None:
    """The folder of a run of claims, given as a path or as its name under `out`; None where there is none."""
    return next((folder for folder in (Path(reference), out / reference) if (folder / RESULTS).is_file()), None)


def of_documents(groups: Sequence[Group], names: Sequence[str]) -> tuple[Group, ...]:
    """The last of each document, series and domain, in the order in which they were begun."""
    latest = {(g.document, g.series, g.case.domain): g for g in groups if g.document in names}
    return tuple(latest.values())
