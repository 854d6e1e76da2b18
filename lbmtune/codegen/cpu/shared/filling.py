"""The skeletons of kernels/cpu, and lines for their fields."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from lbmtune.codegen.skeleton import skeleton

_INDENT = " " * 4


def filled(name: str, **values: str) -> str:
    """Return the text of kernels/cpu/<name>.py.in with values for its fields."""
    return Template(skeleton(f"cpu/{name}.py.in")).substitute(values)


def indented(lines: list[str], depth: int) -> str:
    """Return the text of lines inside `depth` blocks of Python."""
    return "\n".join(_INDENT * depth + line for line in lines)


def between(some: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return lines with some others spread evenly among them."""
    starts = [n * len(lines) // len(some) for n in range(len(some))]
    mixed = list(lines)
    for start, one in reversed([*zip(starts, some, strict=True)]):
        mixed.insert(start, one)
    return mixed
