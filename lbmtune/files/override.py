"""--set key=value: what stands in a study file, replaced or added."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lbmtune.catalogue.config import FAMILIES
from lbmtune.errors import InputError, nearest

Known = Mapping[str, tuple[str, ...]]
"""The keys of each table."""
_ONE_OF_SEVERAL = re.compile(r"\[\d+\]$")


def override(tree: dict[str, Any], item: str, known: Known) -> list[str]:
    """Puts 'key=value' into the tree of a study file and returns the dotted keys that it set. Raises InputError."""
    key, equals, text = item.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f"--set {item!r} is not of the form key=value; write for example --set storage=fp64.")
    return [place for target in _targets(key, known) for place in _put(tree, target, _value(text.strip()), item)]


def backends(item: str, known: Known) -> set[str]:
    """The backends on whose kernels 'key=value' acts alone; none where it sets no axis. Raises InputError."""
    targets = _targets(item.partition("=")[0].strip(), known)
    return {backend for backend in FAMILIES for target in targets if re.match(rf"axes\.{backend}\b", target)}


def _put(tree: dict[str, Any], target: str, value: object, item: str) -> list[str]:
    """Sets a dotted key, in each of several tables of one name, and returns where."""
    *names, last = target.split(".")
    found = {"": tree}
    for name in names:
        found = {place: one for path, node in found.items() for place, one in _inner(node, path, name, item)}
    for path, node in found.items():
        node[last] = value
        if path == "case":
            _drop_rivals(node, last)
    return [f"{path}.{last}" if path else last for path in found]


def _inner(node: dict[str, Any], path: str, name: str, item: str) -> list[tuple[str, dict[str, Any]]]:
    """The tables of a name in a table, with their dotted keys. name: 'cuda', or 'cuda[2]' for one of several."""
    name, _, number = name.rstrip("]").partition("[")
    inner, key = node.setdefault(name, {}), f"{path}.{name}" if path else name
    several = isinstance(inner, list)
    places = [(f"{key}[{n}]", one) for n, one in enumerate(inner, 1)] if several else [(key, inner)]
    if number and not (several and 0 < int(number) <= len(inner)):
        raise InputError(f"--set {item}: the study has {len(places)} {key}; correct the number.")
    if not all(isinstance(one, dict) for _, one in places):
        raise InputError(f"--set {item}: {key} is not a table in the study; correct it there.")
    return [places[int(number) - 1]] if number else places


def _drop_rivals(case: dict[str, Any], key: str) -> None:
    """An override of one way to give the viscosity takes the place of the file's."""
    rivals = ("relaxation_rate", "viscosity", "reynolds")
    for rival in rivals if key in rivals else ():
        if rival != key:
            case.pop(rival, None)


def _targets(key: str, known: Known) -> list[str]:
    axes = [f"axes.{backend}.{key}" for backend in FAMILIES if key in known[f"axes.{backend}"]]
    if axes:
        return axes
    table, _, last = key.rpartition(".")
    if last in known.get(_ONE_OF_SEVERAL.sub("", table), ()):
        return [key]
    everything = {f"{t}.{k}" if t else k: f"{t}.{k}" if t else k for t, names in known.items() for k in names}
    everything |= {k: k for backend in FAMILIES for k in known[f"axes.{backend}"]}
    everything |= {k: f"{t}.{k}" for t in ("case", "budget", "protocol") for k in known[t]}
    near = nearest(key, everything)
    hint = f"did you mean {everything[near]!r}?" if near else _keys(known)
    raise InputError(f"--set {key}: there is no such key; {hint}")


def _keys(known: Known) -> str:
    """What a study file has, in words."""
    alone = ", ".join(name for name in known[""] if name not in known)
    each = (f"{table}.({', '.join(known[table])})" for table in ("case", "budget", "accuracy", "protocol"))
    return f"there are {alone}, {', '.join(each)}, and the axes that lbmtune list shows."


def _value(text: str) -> object:
    """A TOML value where it is one, else the text itself; a comma makes a list."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        return [_value(part.strip()) for part in text.split(",")] if "," in text else text
