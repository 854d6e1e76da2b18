"""Printing: facts go to standard output, everything else to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import msgspec
from rich.console import Console
from rich.table import Table

from lbmtune.catalogue.config import Scalar, defaults


def stdout() -> Console:
    """The console for facts."""
    return _console(to_stderr=False)


def stderr() -> Console:
    """The console for progress and remarks."""
    return _console(to_stderr=True)


def _console(*, to_stderr: bool) -> Console:
    console = Console(stderr=to_stderr, highlight=False, soft_wrap=True)
    # what is piped into a file or a program keeps one line per row
    return console if console.is_terminal else Console(stderr=to_stderr, highlight=False, soft_wrap=True, width=240)


def emit_json(facts: object) -> None:
    """Prints facts as JSON."""
    encoded = msgspec.json.encode(facts, order="deterministic")
    sys.stdout.write(msgspec.json.format(encoded).decode() + "\n")


def note(text: str) -> None:
    """A remark that is not part of the facts."""
    stderr().print(text, markup=False)


@cache
def note_once(text: str) -> None:
    """A remark that is not repeated where several parts of a verb would make it."""
    note(text)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table; columns whose name ends in '>' are aligned to the right."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column.rstrip(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    for row in rows:
        result.add_row(*(str(cell) for cell in row))
    return result


def print_pairs(rows: Sequence[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    width = max(len(name) for name, _ in rows)
    stdout().print("\n".join(f"{name:<{width}}  {value}" for name, value in rows), markup=False)


def short(config: Mapping[str, Scalar]) -> str:
    """A configuration in one line: scheme, layout and storage, then the axes that differ from their default."""
    usual = defaults(str(config["backend"]))
    first = ("scheme", "layout", "storage")
    rest = (f"{name}={value}" for name, value in config.items() if name not in first and usual.get(name) != value)
    return " ".join([*(str(config[name]) for name in first), *rest])
