"""Numbers, braces and lines of C++, and the pieces of kernels/export that they fill."""

from collections.abc import Iterable
from string import Template

from lbmtune.codegen.skeleton import skeleton

C_TYPES = {"float32": "float", "float64": "double", "float16": "unsigned short", "uint16": "unsigned short"}
C_TYPES |= {"int32": "int", "uint32": "unsigned"}
"""Types of elements and arguments, by their names in NumPy."""


def filled(piece: str, **values: object) -> str:
    """Return a piece of kernels/export with values for its fields."""
    return Template(skeleton(f"export/{piece}.h.in")).substitute(values).rstrip() + "\n"


def lines_of(lines: Iterable[str], indent: int) -> str:
    """Return lines, indented by some blanks."""
    return "\n".join(" " * indent + line for line in lines)


def braced(values: Iterable[object]) -> str:
    """Return a list of initial values."""
    return "{" + ", ".join(map(str, values)) + "}"


def matrix(rows: Iterable[Iterable[float]]) -> str:
    """Return rows of numbers as a table of a macro."""
    return table_rows(braced(map(real, row)) for row in rows)


def table_rows(rows: Iterable[str]) -> str:
    """Return rows of a table of a macro, each on a line of its own."""
    return "{" + ", \\\n      ".join(rows) + "}"


def _number(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def real(value: object) -> str:
    """Return a number as a double of C, which reads the same one."""
    return repr(_number(value) if isinstance(value, str) else float(value))  # type: ignore[arg-type]


def truth(value: object) -> str:
    """Return a value as a bool of C++."""
    return "true" if value else "false"


def quoted(text: str) -> str:
    """Return a text as a literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
