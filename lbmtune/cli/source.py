"""The text of a study file: where a key stands, and errors that say so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from lbmtune.errors import InputError


@dataclass(frozen=True)
class Source:
    """Where a study comes from. overridden: keys that --set gave, which stand on no line."""

    name: str
    text: str
    overridden: frozenset[str] = frozenset()

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raises InputError for a key such as 'case.lattice'."""
        if key in self.overridden:
            raise InputError(f"--set {key}: {problem}")
        line = line_of(self.text, key)
        raise InputError(f"{self.name}{f', line {line}' if line else ''}: {key}: {problem}")


def line_of(text: str, key: str) -> int | None:
    """The line, from 1, on which a dotted key stands; else that of the nearest table above it."""
    table, found = "", None
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        entry = re.match(r"\s*([\w.\"'-]+)\s*=", line)
        if header:
            table = header[1].replace(" ", "")
            name = table
        elif entry:
            name = f"{table}.{entry[1]}" if table else entry[1]
        else:
            continue
        if name == key:
            return number
        if header and key.startswith(f"{name}."):
            found = number
    return found
