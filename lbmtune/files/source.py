"""The text of a study file, and errors that name the line of a key."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lbmtune.errors import InputError, suggestion
from lbmtune.regular_file import regular_bytes

TOO_MUCH_TOML = "is nested too deeply, or has a number of too many digits"
"""Why the parser of TOML gives up without an error of its own."""


@dataclass(frozen=True)
class Source:
    """The name and text of a study file. overridden: keys of --set, which are on no line.

    folder: where the relative paths of the file begin; those of --set begin at the working directory.
    """

    name: str
    text: str
    overridden: frozenset[str] = frozenset()
    folder: Path = Path()

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise InputError for a key such as 'case.lattice'."""
        if key in self.overridden:
            raise InputError(f"--set {self._as_given(key)}: {problem}")
        line = line_of(self.text, key)
        raise InputError(f"{self.name}{f', line {line}' if line else ''}: {key}: {problem}")

    def _as_given(self, key: str) -> str:
        """Return a key as --set gave it: a knob that was set for all backends has its name alone."""
        name = key.rpartition(".")[2]
        matches = (re.fullmatch(rf"axes\.(\w+)(\[\d+\])?\.{name}", one) for one in self.overridden)
        kinds = {match[1] for match in matches if match}
        return name if key.startswith("axes.") and len(kinds) > 1 else key

    def check_name(self, key: str, value: str, known: Iterable[str]) -> None:
        """Raise InputError if a value is none of the known ones."""
        names = list(known)
        if value not in names:
            self.fail(key, f"unknown {key.rpartition('.')[2]} {value!r}; {suggestion(value, names)}")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file without a byte order mark. Raises InputError."""
    try:
        return regular_bytes(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; check the path and its permissions.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from None


def line_of(text: str, key: str) -> int | None:
    """Return the line, from 1, of a dotted key; else that of the nearest table above it.

    Of several tables of one name, the second is 'name[2]'.
    """
    table, found, seen = "", None, Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*(\[\[?)([^\[\]]+)\]", line)
        entry = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        if header:
            name = header[2].replace(" ", "")
            seen[name] += 1
            table = name = f"{name}[{seen[name]}]" if header[1] == "[[" else name
        elif entry:
            name = f"{table}.{entry[1]}" if table else entry[1]
        else:
            continue
        if name in (key, f"{key}[1]"):
            return number
        if key.startswith(f"{name}." if header else f"{name}["):
            found = number
    return found
