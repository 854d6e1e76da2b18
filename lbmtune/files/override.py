"""Overrides key=value of a study file (--set)."""

import logging
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, KernelConfig, backend_knobs, knobs_by_name
from lbmtune.errors import InputError, nearest
from lbmtune.files.axesfile import plain_values
from lbmtune.files.source import TOO_MUCH_TOML
from lbmtune.records.legacy.configurations import name_in
from lbmtune.records.legacy.spaces import is_legacy_table
from lbmtune.records.spec import made

LOG = logging.getLogger("lbmtune")
Known = Mapping[str, tuple[str, ...]]
"""The keys of each table."""
_TEXT = "case.geometry"
"""The key whose value is one text, with its commas."""
_VISCOSITY = {"relaxation_rate", "viscosity", "reynolds"}
"""Keys of a case of which each gives the viscosity: one drops the others."""
_SPACE = re.compile(r"axes\.(\w+)(\[\d+\])?")
_ONE_OF_SEVERAL = re.compile(r"\[\d+\]$")


def override(tree: dict[str, Any], item: str, known: Known) -> list[str]:
    """Put 'key=value' into the tree of a study file and return the dotted keys that were set. Raises InputError.

    A knob goes into the spaces whose families have it, into all of them if none has: reading the study then refuses it.
    """
    key, equals, text = item.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f"--set {item!r} is not of the form key=value; write for example --set storage=fp64.")
    targets = _targets(key, known)
    try:
        value = _value(text.strip(), listed=targets != [_TEXT])
    except (RecursionError, ValueError):
        raise InputError(f"--set {key}: its value {TOO_MUCH_TOML}; correct it.") from None
    found = [
        (path, node, target.rpartition(".")[2]) for target in targets for path, node in _tables(tree, target, item)
    ]
    placed = [one for one in found if _has(tree, *one)]
    return [_put(tree, path, node, name, value) for path, node, name in placed or found]


def backends(item: str, known: Known) -> set[str]:
    """Return the backends that have the knob of 'key=value'; none if it sets no knob. Raises InputError."""
    targets = _targets(item.partition("=")[0].strip(), known)
    return {backend for backend in FAMILIES for target in targets if re.match(rf"axes\.{backend}\b", target)}


def _tables(tree: dict[str, Any], target: str, item: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables that hold a dotted key, with their dotted names: several, if spaces of axes have one name."""
    found = {"": tree}
    for name in target.split(".")[:-1]:
        found = {place: one for path, node in found.items() for place, one in _inner(node, path, name, item)}
    return list(found.items())


def _has(tree: Mapping[str, Any], path: str, node: Mapping[str, Any], name: str) -> bool:
    """Return whether a table takes a key: a space takes knobs of its families, by names of today or of version 0.1.

    A space of all families of the study takes knobs of any of them.
    """
    if backend := _made(tree, path, node):
        chosen = tree["families"]
        families = [record for one, record in FAMILIES[backend].items() if made(one, chosen)]
        return name == "family" or any(name in knobs_by_name(family) for family in families)
    return all(name == "family" or name_in(knobs_by_name(family), name) for family in _families(path, node))


def _made(tree: Mapping[str, Any], path: str, node: Mapping[str, Any]) -> str:
    """Return the backend of a space that has all families of a study whose values are made; else nothing."""
    match = _SPACE.fullmatch(path)
    return match[1] if match and tree.get("families") and "family" not in node else ""


def _families(path: str, node: Mapping[str, Any]) -> list[type[KernelConfig]]:
    """Return the families of a space; none for another table, and for a space of version 0.1, which names none."""
    match = _SPACE.fullmatch(path)
    if not match:
        return []
    plain = {key: plain_values(value, key, match[1]) for key, value in node.items()}
    if is_legacy_table(plain, match[1]):
        return []
    records = FAMILIES[match[1]]
    return [records[name] for name in map(str, plain.get("family", (DEFAULT_FAMILY,))) if name in records]


def _put(tree: Mapping[str, Any], path: str, node: dict[str, Any], name: str, value: Any) -> str:
    """Set one key of a table and return it with the name of the table."""
    families = [] if _made(tree, path, node) else _families(path, node)
    now = name_in(knobs_by_name(families[0]), name) if families else None
    if now and now.name != name:
        LOG.warning("%s is called %s now", name, now.name)
        value = [now.values.get(one, one) for one in (value if isinstance(value, list) else [value])]
        name = now.name
    node[name] = value
    if path == "case" and name in _VISCOSITY:
        for rival in _VISCOSITY - {name}:
            node.pop(rival, None)
    return f"{path}.{name}" if path else name


def _inner(node: dict[str, Any], path: str, name: str, item: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the tables of a name in a table, with their dotted keys. name: 'cuda', or 'cuda[2]' for one of several."""
    name, _, number = name.rstrip("]").partition("[")
    inner, key = node.setdefault(name, {}), f"{path}.{name}" if path else name
    several = isinstance(inner, list)
    places = [(f"{key}[{n}]", one) for n, one in enumerate(inner, 1)] if several else [(key, inner)]
    if number and not (several and 0 < int(number) <= len(inner)):
        raise InputError(f"--set {item}: the study has {len(places)} {key}; correct the number.")
    if not all(isinstance(one, dict) for _, one in places):
        raise InputError(f"--set {item}: {key} is not a table in the study; correct it there.")
    return [places[int(number) - 1]] if number else places


def _targets(key: str, known: Known) -> list[str]:
    axes = [f"axes.{backend}.{key}" for backend in FAMILIES if key in known[f"axes.{backend}"]]
    if axes:
        return axes
    table, _, last = key.rpartition(".")
    if last in known.get(_ONE_OF_SEVERAL.sub("", table), ()):
        return [key]
    today = {**known, **{f"axes.{backend}": tuple(backend_knobs(backend)) for backend in FAMILIES}}
    everything = {f"{t}.{k}" if t else k: f"{t}.{k}" if t else k for t, names in today.items() for k in names}
    everything |= {k: k for backend in FAMILIES for k in today[f"axes.{backend}"]}
    everything |= {k: f"{t}.{k}" for t in ("case", "budget", "limits", "protocol", "output") for k in known[t]}
    near = nearest(key, everything)
    hint = f"did you mean {everything[near]!r}?" if near else _keys(known)
    raise InputError(f"--set {key}: there is no such key; {hint}")


def _keys(known: Known) -> str:
    alone = ", ".join(name for name in known[""] if name not in known)
    each = (f"{table}.({', '.join(known[table])})" for table in ("case", "budget", "limits", "output", "protocol"))
    return f"there are {alone}, {', '.join(each)}, and the knobs that lbmtune list shows."


def _value(text: str, *, listed: bool) -> object:
    """Return a TOML value if the text is one, else the text itself; if listed, a comma makes a list of it."""
    try:
        return tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        parts = text.split(",") if listed else [text]
        return [_value(part.strip(), listed=False) for part in parts] if len(parts) > 1 else text
