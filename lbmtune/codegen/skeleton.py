"""The skeletons of kernels, read from the installed package or from the repository, and lines for their fields."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Template

_PACKAGE = Path(__file__).resolve().parent.parent
_INDENT = " " * 4


@cache
def skeleton(name: str) -> str:
    """Return the text of kernels/<name>, for example 'cpu/direct/row.py.in'."""
    return (kernels_folder() / name).read_text(encoding="utf-8")


def kernels_folder() -> Path:
    """Return the folder of the skeletons."""
    installed = _PACKAGE / "kernels"
    return installed if installed.is_dir() else _PACKAGE.parent / "kernels"


def filled(name: str, **values: object) -> str:
    """Return the text of kernels/cpu/<name>.py.in with values for its fields."""
    return Template(skeleton(f"cpu/{name}.py.in")).substitute(values)


def indented(lines: Iterable[str], depth: int) -> str:
    """Return the text of lines inside `depth` blocks of Python."""
    return "\n".join(_INDENT * depth + line for line in lines)


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Return lines inside a block of Python, or nothing if there are no lines."""
    inside = [_INDENT + line for line in lines]
    return [head, *inside] if inside else []
