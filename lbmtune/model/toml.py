"""Machine descriptions as text: TOML that a person can read and edit."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from lbmtune.errors import InputError
from lbmtune.model.machine import Machine
from lbmtune.model.measured import lacking, lacking_of_cpu
from lbmtune.records.store import write_atomically

_POSITIVE = re.compile(r"^(calibration|caches_bytes|streams)\b|^environment\..*_hz$|_per_s\b")
"""Names of what nothing measures to be zero; what a core waits for its L2 cache may be."""


def write_machine(path: Path, machine: Machine) -> None:
    """Raises InputError where the file cannot be written."""
    lines = [
        f"# {machine.environment.device}: measured bandwidths, bytes per second",
        *_lines(msgspec.to_builtins(machine)),
    ]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def read_machine(path: Path) -> Machine:
    """Raises InputError where the file is missing or damaged."""
    try:
        machine = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Machine)
        _check(machine)
        return machine
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; lbmtune devices writes it.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"{path} is damaged, or of another version: {error}; delete it and run lbmtune devices again."
        ) from error


def _check(machine: Machine) -> None:
    """Raises ValidationError where figures cannot have been measured."""
    for name, value in _numbers(msgspec.to_builtins(machine)):
        if not isfinite(value) or (value <= 0 and _POSITIVE.search(name)):
            raise msgspec.ValidationError(f"{name} is {value}")
    if not machine.stream_bytes_per_s:
        raise msgspec.ValidationError("stream_bytes_per_s is empty")
    if machine.cpu is not None:
        _whole("cpu", lacking_of_cpu(machine.cpu))
    if machine.calibration is None:
        return
    if machine.multiprocessors < 1:
        raise msgspec.ValidationError(f"multiprocessors is {machine.multiprocessors}")
    for one in fields(machine.calibration):
        if one.default_factory is MISSING and getattr(machine.calibration, one.name) == {}:
            raise msgspec.ValidationError(f"calibration.{one.name} is empty")
    _whole("calibration", lacking(machine.calibration))


def _whole(table: str, missing: Iterator[str]) -> None:
    """Raises ValidationError with the first figure that is missing and how many more, where there is one."""
    first, *more = *missing, ""
    if first:
        others = f", and {len(more) - 1} more" if len(more) > 1 else ""
        raise msgspec.ValidationError(f"{table}.{first}{others}, which the model looks up")


def _numbers(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """All numbers of a table and of those in it, by their names with dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _numbers(value, (*path, key))
        elif isinstance(value, (int, float)):
            yield ".".join((*path, key)), value


def _lines(table: dict[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    """A table with its sub-tables after it; what is None is left out."""
    plain = {key: value for key, value in table.items() if value is not None and not isinstance(value, dict)}
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            inner = (*path, _key(key))
            lines += ["", f"[{'.'.join(inner)}]", *_lines(value, inner)]
    return lines


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _value(name)


def _value(value: Any) -> str:
    # for strings, numbers, booleans and lists of them JSON is TOML, once non-ASCII characters stand for themselves
    return json.dumps(value, ensure_ascii=False)
