"""Printing: facts go to standard output, everything else to standard error."""

import logging
import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from lbmtune.catalogue.config import DEFAULT_FAMILY, Scalar, defaults, family
from lbmtune.printable import printable

LOG = logging.getLogger("lbmtune")
_GAP = 2
"""Blanks between the columns of a table."""
_ROOM = 40
"""Least characters of a column of words beside others."""


JSON_VERSION = 2
"""Version of what --json prints: counts up if a name changes or goes. The first one had no names for it."""
_PIPED = 10_000
"""Characters of a line that is piped: no row is as long."""


class _Console(Console):
    """A console that shows the control characters of texts and does not obey them."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Return a string as it is printed, also those in cells of tables."""
        return super().render_str(printable(text), **how)


def stdout() -> Console:
    """Return the console for facts."""
    return _console(to_stderr=False)


def stderr() -> Console:
    """Return the console for progress, which prints nothing with --quiet."""
    return _console(to_stderr=True, quiet=not LOG.isEnabledFor(logging.INFO))


def _console(*, to_stderr: bool, quiet: bool = False) -> Console:
    console = _Console(stderr=to_stderr, quiet=quiet, highlight=False, markup=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _PIPED  # what is piped into a file or a program keeps one line per row
    return console


def emit_json(verb: str, facts: object) -> None:
    """Print the facts of a verb as JSON, with the name of their form and its version."""
    named = {"format": f"lbmtune.{verb}", "version": JSON_VERSION, **msgspec.to_builtins(facts, str_keys=True)}
    encoded = msgspec.json.encode(named, order="deterministic")
    emit(msgspec.json.format(encoded).decode() + "\n")


def emit(text: str) -> None:
    """Print a text as it is, with its control characters shown."""
    sys.stdout.write(printable(text))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a plain table; columns whose name ends in '>' are aligned to the right."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column.rstrip(">"), justify="right" if column.endswith(">") else "left", overflow="fold")
    for row in rows:
        result.add_row(*(str(cell) for cell in row))
    return result


def fitted(wide: Table, width: int, spare: Sequence[str]) -> tuple[Table, ...]:
    """Return a table of figures, a key and words in up to `width` characters, with no figure, heading or key broken.

    Where the words, which are its last column, have no room beside the others, they stand in a table of their own with
    the key. Then columns that say nothing are left out, and as many of those named in `spare`, the first ones first,
    as the others need.
    """
    *figures, words = wide.columns
    if _width(figures) + _GAP + min(_width([words]), _ROOM) <= width:
        return (wide,)
    figures = [column for column in figures if not {*column.cells} <= {"", "-"}]
    for name in spare:
        if _width(figures) > width:
            figures = [column for column in figures if column.header != name]
    narrow = _of_columns(str(wide.title), figures)
    narrow.width = _width(figures)
    return narrow, _of_columns("", (figures[-1], words))


def _width(columns: Sequence[Column]) -> int:
    """Return the characters of columns beside one another, with nothing broken."""
    widest = (max(len(str(text)) for text in (column.header, *column.cells)) for column in columns)
    return sum(widest) + _GAP * (len(columns) - 1)


def _of_columns(title: str, columns: Sequence[Column]) -> Table:
    names = [f"{column.header}{'>' if column.justify == 'right' else ''}" for column in columns]
    return table(title, names, zip(*(map(str, column.cells) for column in columns), strict=True))


def print_pairs(rows: Sequence[tuple[str, object]]) -> None:
    """Print names and values, one a line; on a terminal a long value is wrapped below its beginning."""
    console, width = stdout(), max(len(name) for name, _ in rows)
    room = max(console.width - width - 2, _ROOM) if console.is_terminal else sys.maxsize
    for name, value in rows:
        below = f"\n{'':<{width}}  "
        console.print(f"{name:<{width}}  {below.join(_lines(str(value), room))}", markup=False)


def _lines(text: str, room: int) -> list[str]:
    """Return a text in lines of up to `room` characters, broken between words."""
    return [text] if len(text) <= room else wrap(text, room, break_long_words=False, break_on_hyphens=False)


def short(config: Mapping[str, Scalar]) -> str:
    """Return a configuration in one line: scheme, layout, storage, then the knobs that differ from their default."""
    usual = defaults(family(str(config["backend"]), str(config["family"])))
    first = ("backend", "family", "scheme", "layout", "storage")
    rest = (f"{name}={value}" for name, value in config.items() if name not in first and usual.get(name) != value)
    kind = [str(config["family"])] if config["family"] != DEFAULT_FAMILY else []
    return " ".join([*kind, *(str(config[name]) for name in first[2:] if name in config), *rest])
