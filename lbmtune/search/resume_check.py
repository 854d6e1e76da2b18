"""Checks before a study is resumed: same case and knobs, same device, same software."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from lbmtune.errors import InputError
from lbmtune.records.study import StudyHeader, StudySpec


def check_resumable(kept: StudyHeader, now: StudyHeader, folder: Path) -> None:
    """Raise InputError if a study cannot be resumed: another device, software or specification; budgets may differ."""
    version = [("lbmtune", kept.version, now.version)] if kept.version != now.version else []
    for name, was, here in [*kept.environment.differences(now.environment), *version]:
        raise InputError(
            f"{folder} was begun with {name} {was!r} and this is {here!r}; resume it there or start a new study."
        )
    check_same_spec(kept.spec, now.spec, folder)


def check_same_spec(kept: StudySpec, now: StudySpec, folder: Path) -> None:
    """Raise InputError, with the field and both values, if two studies differ in more than name and budget."""
    for name in ("case", "axes", "objective", "seed", "protocol", "max_error"):
        was, here = (_fields(getattr(spec, name), name) for spec in (kept, now))
        for key in {**was, **here}:
            if was.get(key) != here.get(key):
                raise InputError(
                    f"{folder} holds a study with {key} {_text(was.get(key))}, and this one has "
                    f"{_text(here.get(key))}; only the budget can change, so resume it as it was or choose another "
                    "--out."
                )


def _fields(value: Any, name: str) -> dict[str, Any]:
    """Return the values of nested records and tables by dotted name; lists of tables count from 1."""
    parts = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    if isinstance(parts, Mapping):
        inner = {f"{name}.{n}": part for n, part in parts.items()}
    elif isinstance(parts, Sequence) and any(isinstance(part, Mapping) for part in parts):
        inner = {f"{name}[{n}]": part for n, part in enumerate(parts, 1)}
    else:
        return {name: parts}
    return {key: leaf for n, part in inner.items() for key, leaf in _fields(part, n).items()}


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else "not given" if value is None else str(value)
