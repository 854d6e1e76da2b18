"""Texts of geometries and patches: a name and its parameters, 'packing:fraction=0.5:radius=8:seed=1'.

A value with a colon stands in quotes: 'file:path="10:30.npy"'. Inside them the quote itself is doubled.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from lbmtune.errors import InputError, unknown

_PART = re.compile(
    r"""(?P<name>[^:=]*)=(?:"(?P<double>(?:[^"]|"")*)"|'(?P<single>(?:[^']|'')*)'|(?P<bare>[^:]*))(?::|$)"""
)


class GeometryError(InputError):
    """Bad input: a file of voxels, or solid cells that do not suit the case."""


def split(text: str, word: str, form: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters of a text. Raises InputError. word, form: as in `parsed`."""
    name, _, rest = text.partition(":")
    values: dict[str, str] = {}
    while rest := rest.lstrip(":"):
        part = _PART.match(rest)
        if not part:
            raise InputError(
                f"{word} part {rest.partition(':')[0]!r} is not of the form name=value; write for example {form}, and "
                'quote a value with a colon: name="10:30".'
            )
        double, single, bare = part["double"], part["single"], part["bare"]
        values[part["name"]] = (
            double.replace('""', '"') if double is not None else single.replace("''", "'") if single else bare or ""
        )
        rest = rest[part.end() :]
    return name, values


def written(name: str, values: Mapping[str, str]) -> str:
    """Return the text of a name and parameters, with quotes where they are needed."""
    return ":".join((name, *(f"{key}={_quoted(value)}" for key, value in values.items())))


def _quoted(value: str) -> str:
    doubled = value.replace('"', '""')
    return f'"{doubled}"' if ":" in value or value[:1] in ("'", '"') else value


def parsed(text: str, kinds: Mapping[str, Any], word: str, form: str) -> Any:
    """Return the object of a text. Raises InputError.

    kinds: classes by name; word: the noun for them in errors; form: an example of a text.
    """
    name = text.partition(":")[0]
    if name not in kinds:
        raise unknown(word, name, kinds)
    known = {f.name: f for f in fields(kinds[name])}
    values: dict[str, object] = {}
    for key, value in split(text, word, form)[1].items():
        if key not in known:
            raise unknown(f"parameter of {word} {name}", key, known)
        values[key] = _converted(f"{word} {text!r}", known[key], value, form)
    for key, field in known.items():
        if field.default is MISSING and key not in values:
            raise InputError(f"{word} {text!r} needs {key}; add :{key}=VALUE.")
    return kinds[name](**values)


def _converted(what: str, field: Field[Any], text: str, form: str) -> object:
    """Return the value in the type of the parameter's default; a parameter without default is a text."""
    kind = str if field.default is MISSING else type(field.default)
    try:
        return kind(text)
    except ValueError:
        number = "a whole number" if kind is int else "a number"
        raise InputError(f"{what}: {field.name}={text!r} is not {number}; write for example {form}.") from None
