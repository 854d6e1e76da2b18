"""Filling the skeletons of kernels/cpu."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

from lbmtune.codegen.skeleton import skeleton

_INDENT = " " * 4


def filled(name: str, **values: str) -> str:
    """The text of a skeleton with its names replaced."""
    return Template(skeleton(f"cpu/{name}.py.in")).substitute(values)


def indented(lines: list[str], depth: int) -> str:
    """Lines inside so many blocks of Python."""
    return "\n".join(_INDENT * depth + line for line in lines)


def between(some: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Lines with others among them, each ahead of an equal share."""
    starts = [n * len(lines) // len(some) for n in range(len(some))]
    mixed = list(lines)
    for start, one in reversed([*zip(starts, some, strict=True)]):
        mixed.insert(start, one)
    return mixed
