"""Trees of TOML files in their types. Every error names file, line and key."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from lbmtune.errors import InputError, suggestion
from lbmtune.files.casefile import EXAMPLE_DOMAIN
from lbmtune.files.source import TOO_MUCH_TOML, Source

T = TypeVar("T")
_FORMS = {
    "case.domain": f"two or three cell counts; write for example {EXAMPLE_DOMAIN}",
    "case.faces": "a list of kinds of faces; write those that lbmtune list names",
    "case.inlet_velocity": "three components of a velocity; write for example [0.05, 0.0, 0.0]",
    "budget.time": "a time; write for example 90s, 5m or 1h",
    "budget.search_time": "a time; write for example 90s, 5m or 1h",
    "objective": "the name of an objective, or a list of names",
    "limits.footprint": "a size; write for example 20GiB",
    "budget.target": "a share; write for example 0.97, or ceiling:0.97",
}
"""Forms of values that may have more than one type, and what to do."""
_KINDS = {"float": "a number", "int": "a whole number", "str": "a text"}


def parsed(text: str, name: str) -> dict[str, Any]:
    """Return the tree of a file. Raises InputError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = re.sub(r"\s*\(at (line \d+), column \d+\)", "", str(error))
        line = re.search(r"line (\d+)", str(error))
        at = f", line {line[1]}" if line else ""
        raise InputError(f"{name}{at}: this is not TOML: {message[0].lower() + message[1:]}.") from None
    except (RecursionError, ValueError):
        raise InputError(f"{name} {TOO_MUCH_TOML}; correct it.") from None


def converted(tree: Mapping[str, Any], kind: type[T], source: Source, table: str = "") -> T:
    """Return a tree in its type. table: the place of the tree in its file. Raises InputError."""
    try:
        return msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        path = re.sub(r"patches\[(\d+)\]", lambda found: f"patches({int(found[1]) + 1})", path.strip("`"))
        path = re.sub(r"\[[^\]]*\]", "", path).lstrip(".").replace("(", "[").replace(")", "]")
        missing = re.match(r"Object missing required field `(\w+)`", message)
        key = ".".join(filter(None, (table, path, missing and missing[1])))
        source.fail(key, "is missing; give it a value." if missing else _mistyped(message, key, _at(tree, path)))


def _mistyped(message: str, key: str, value: object) -> str:
    """Return what is wrong with the type of a value, without the words of the parser."""
    if key in _FORMS:
        return f"{value!r} is not {_FORMS[key]}."
    expected = re.match(r"Expected `(\w+)( \| null)?`, got", message)
    if expected and expected[1] in _KINDS and not isinstance(value, dict):
        return f"{value!r} is not {_KINDS[expected[1]]}; correct the value."
    return f"{message[0].lower() + message[1:]}; correct the value."


def _at(tree: Mapping[str, Any], path: str) -> object:
    value: Any = tree
    for part in filter(None, path.split(".")):
        name, _, number = part.rstrip("]").partition("[")
        value = value[name][int(number) - 1] if number else value[name]
    return value


def checked(tree: Mapping[str, Any], kind: type[T], table: str, source: Source, **given: str) -> T:
    """Return a table in its type. given: fields that it does not have itself. Raises InputError."""
    known = [f.name for f in fields(kind) if f.name not in given]  # type: ignore[arg-type]  # a dataclass
    for key in tree:
        if key not in known:
            source.fail(f"{table}.{key}" if table else key, f"unknown key; {suggestion(key, known)}")
    return converted({**tree, **given}, kind, source, table)
