"""Read and write machine descriptions as TOML."""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.model.machine.benchmark_names import lacking, lacking_of_cpu
from lbmtune.model.machine.curves import by_bytes
from lbmtune.model.machine.description import Machine
from lbmtune.records.whole_files import write_atomically
from lbmtune.regular_file import regular_bytes

_PARTS = ("environment", "calibration", "cpu", "conditions", "datasheet", "output", "links")
"""Tables with fields of their own; keys of other tables are names of figures."""
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "str": "text in quotes",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
}
"""Types by their names in msgspec."""
_ROOM = 40
"""Characters of a value in a sentence."""


class Range(NamedTuple):
    """A range of values. unit: as it follows 'has to be'."""

    unit: str
    low: float
    high: float


_COUNT = Range("a count", 1, 1e5)
_RANGES = {
    # of a slow disk
    r"file_bytes_per_s": Range("bytes per second", 1e5, 1e12),
    r".*_bytes_per_s": Range("bytes per second", 1e8, 1e15),
    r".*_flops_per_s": Range("operations per second", 1e9, 1e18),
    r".*_per_s": Range("a rate per second", 1e6, 1e16),
    # the latency of L2 may be hidden
    r"refills?_s": Range("seconds", 0, 1e-3),
    # they copy up to 300 MB
    r"small_s": Range("seconds", 1e-9, 1),
    r".*_s": Range("seconds", 1e-10, 1e-2),
    # 0: unknown
    r"memory_bytes": Range("bytes", 0, 1e15),
    r".*_bytes": Range("bytes", 1e3, 1e10),
    # after a measurement; the driver may report none
    r"(sm|memory)_clock_hz": Range("hertz", 0, 1e11),
    r".*_hz": Range("hertz", 1e6, 1e11),
    r"power(_limit)?_w": Range("watts", 0, 1e5),
    r"temperature_c": Range("degrees Celsius", -100, 200),
    r"cpu_share|hidden|cached_hidden": Range("a share", 0, 1),
    r"spread": Range("a share of the median", 0, 1e9),
    r"repeats": Range("logarithms of a ratio", -20, 20),
    r"streams": Range("a count", 1, 1000),
    # 0 for the other kind of device
    r"cores|multiprocessors": _COUNT._replace(low=0),
    r"threads": _COUNT,
    r"registers": Range("a count", 1e3, 1e7),
    r"vector_bits": Range("bits", 0, 2048),
    r"bus_bits": Range("bits", 8, 1e5),
}
"""Ranges by patterns of field names; the first match counts.

They include all devices that exist, and exclude figures in another unit (GB/s, MHz, microseconds).
"""


def write_machine(path: Path, machine: Machine) -> None:
    """Write a machine description. Raises InputError."""
    lines = [
        f"# {machine.environment.device}: measured bandwidths, bytes per second",
        *_lines(msgspec.to_builtins(machine)),
    ]
    write_atomically(path, ("\n".join(lines) + "\n").encode())


def read_machine(path: Path) -> Machine:
    """Read a machine description. Raises InputError if the file is missing or damaged."""
    try:
        return described(path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; lbmtune devices writes it.") from error
    except ValueError as error:
        raise InputError(
            f"{path} is damaged, or of another version: {error}; delete it and run lbmtune devices again."
        ) from error


def described(path: Path) -> Machine:
    """Return the machine of a file. Raises OSError, or ValueError with a clause on the cause."""
    return _read(regular_bytes(path))


@lru_cache(maxsize=32)  # checks of hundreds of figures, for the same few files again and again
def _read(content: bytes) -> Machine:
    try:
        table = tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError("it is no text in UTF-8") from error
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:  # of TOML, or of numbers with thousands of digits
        why = str(error)
        raise ValueError(f"it is no TOML, {why[:1].lower()}{why[1:]}") from error
    try:
        machine = msgspec.convert(table, Machine)
    except msgspec.ValidationError as error:
        raise ValueError(_in_words(str(error), table)) from error
    _check(machine)
    return machine


def _in_words(said: str, table: dict[str, Any]) -> str:
    """Return an error of msgspec in the terms of the file; unchanged if it is of no known kind."""
    what, _, where = said.partition(" - at `$")
    steps = re.findall(r"[^.\[\]`]+|\.\.\.", where)
    if missing := re.fullmatch("Object missing required field `(.*)`", what):
        return f"{_name((*steps, missing[1]))} is missing, which the description of a machine has to have"
    types = re.fullmatch(r"Expected `(\w+)(?: \| null)?`, got `(\w+)`", what)
    path, value = _at(table, steps, types[2] if types else "")
    if what.startswith(("Expected `float` <", "Expected `float` >")) and (plausible := range_of(path[-1])):
        return _outside(plausible, _name(path), value)
    if types and types[1] in _WANTED:
        return f"{_name(path)} is {_shown(value)}, which has to be {_WANTED[types[1]]}"
    if what == "Number out of range":
        return f"{_name(path)} is {_shown(value)}, which is too large for a number"
    return f"{_name(path)}: {what}" if path else what


def _at(table: Any, steps: Sequence[str], kind: str) -> tuple[tuple[str, ...], Any]:
    """Return the path and value of an error. msgspec omits keys of free tables: the first value of the type is it."""
    path: tuple[str, ...] = ()
    for step in steps:
        key = next((one for one, value in table.items() if _kind(value) == kind), "") if step == "..." else step
        if isinstance(table, list):
            table = table[int(key)]
        elif key in table:
            table = table[key]
        else:
            break
        path = (*path, key)
    return path, table


def _kind(value: object) -> str:  # by its name in msgspec
    name = type(value).__name__
    return {"dict": "object", "list": "array"}.get(name, name)


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _WANTED[_kind(value)]
    return _shortened(_value(value) if isinstance(value, (str, bool)) else str(value))


def _check(machine: Machine) -> None:
    if machine.environment.backend not in BACKENDS:
        found = _shown(machine.environment.backend)
        raise ValueError(f"environment.backend is {found}, which has to be one of {', '.join(BACKENDS)}")
    if BACKENDS[machine.environment.backend].shares_host:
        _refuse(_COUNT, "environment.cores", machine.environment.cores)
    if machine.calibration or machine.datasheet:
        _refuse(_COUNT, "multiprocessors", machine.multiprocessors)
    for path, value in _numbers(msgspec.to_builtins(machine)):
        _refuse(range_of(next(name for name in path if name not in _PARTS)), _name(path), value)
    if not machine.stream_bytes_per_s:
        raise ValueError("stream_bytes_per_s is empty")
    if machine.cpu is not None:
        _whole("cpu", lacking_of_cpu(machine.cpu))
    if machine.datasheet and "L2" not in machine.caches_bytes:
        raise ValueError("caches_bytes lacks 'L2', by which the model scales what was measured elsewhere")
    if machine.links and not by_bytes(machine.links.copy_s):
        raise ValueError("links.copy_s has no copy of a number of bytes")
    if machine.calibration is None:
        return
    for one in fields(machine.calibration):
        if one.default_factory is MISSING and getattr(machine.calibration, one.name) == {}:
            raise ValueError(f"calibration.{one.name} is empty")
    _whole("calibration", lacking(machine.calibration, scaled=bool(machine.calibrated_as)))


def _refuse(plausible: Range | None, name: str, value: float) -> None:
    if plausible and not plausible.low <= value <= plausible.high:  # NaN is refused as well
        raise ValueError(_outside(plausible, name, value))


def _outside(plausible: Range, name: str, value: float) -> str:
    bounds = f"from {_bound(plausible.low)} to {_bound(plausible.high)}"
    return f"{name} is {_shortened(str(value))}, which has to be {plausible.unit} {bounds}"


def _whole(table: str, missing: Iterator[str]) -> None:
    """Raise ValueError with the first missing figure and the number of others, if any."""
    first, *more = *missing, ""
    if first:
        others = f", and {len(more) - 1} more" if len(more) > 1 else ""
        raise ValueError(f"{table}.{first}{others}, which the model looks up")


def _numbers(table: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _numbers(value, (*path, key))
        elif isinstance(value, list):
            yield from (((*path, key), one) for one in value if isinstance(one, (int, float)))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, key), value


def _lines(table: dict[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    lines = []
    for key, value in sorted(table.items(), key=lambda item: isinstance(item[1], dict)):  # tables last
        if isinstance(value, dict):
            inner = (*path, _key(key))
            lines += ["", f"[{'.'.join(inner)}]", *_lines(value, inner)]
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines


def _name(path: Sequence[str]) -> str:
    """Return a path as a TOML key: with dots, and quotes around names with spaces."""
    return ".".join(map(_key, path))


def _key(name: str) -> str:
    return name if name.replace("_", "").isalnum() and name.isascii() else _value(name)


def _value(value: Any) -> str:
    # strings, numbers, booleans and lists of them are equal in JSON and TOML, with non-ASCII characters unescaped
    return json.dumps(value, ensure_ascii=False)


def range_of(field: str) -> Range | None:
    """Return the range of the figures in a field, or None."""
    return next((one for pattern, one in _RANGES.items() if re.fullmatch(pattern, field)), None)


def _shortened(text: str) -> str:
    return text if len(text) <= _ROOM else f"{text[:_ROOM]}..."


def _bound(bound: float) -> str:
    """Return a bound as 1e8 and not 1e+08."""
    return re.sub(r"e\+?(-?)0*", r"e\1", f"{bound:g}")
