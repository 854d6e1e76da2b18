"""Filling the marked regions of a skeleton, with #line marks that lead back to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from lbmtune.codegen.skeleton import skeleton

_MARK = re.compile(r"\s*//@(begin|end) (\w+)\s*")


class Piece(NamedTuple):
    """Lines of a skeleton (region is empty) or a region to fill; line: number of its first line in the file."""

    region: str
    lines: tuple[str, ...]
    line: int


@cache
def pieces(name: str, inside: str = "") -> tuple[Piece, ...]:
    """A skeleton, or one region of it, cut at its outermost regions."""
    lines = skeleton(name).splitlines()
    first, last = _bounds(lines, inside) if inside else (0, len(lines))
    found: list[Piece] = []
    start = first
    position = first
    while position < last:
        mark = _MARK.fullmatch(lines[position])
        if mark:
            _, end = _bounds(lines, mark[2], position)
            found.append(Piece("", tuple(lines[start:position]), start + 1))
            found.append(Piece(mark[2], tuple(lines[position + 1 : end]), position + 2))
            position = start = end + 1
        else:
            position += 1
    found.append(Piece("", tuple(lines[start:last]), start + 1))
    return tuple(piece for piece in found if piece.region or piece.lines)


def _bounds(lines: list[str], region: str, start: int = 0) -> tuple[int, int]:
    """First line inside a region, and the line of its end mark."""
    begin = next(n for n in range(start, len(lines)) if lines[n].strip() == f"//@begin {region}")
    end = next(n for n in range(begin, len(lines)) if lines[n].strip() == f"//@end {region}")
    return begin + 1, end


def excerpt(name: str, first: str, last: str) -> str:
    """The lines of a skeleton from one to another, for a second skeleton that needs the same functions."""
    lines = skeleton(name).splitlines()
    start, end = lines.index(first), lines.index(last)
    return "\n".join([f'#line {start + 1} "kernels/{name}"', *lines[start : end + 1]])


def fill(name: str, regions: Mapping[str, str], inside: str = "") -> str:
    """The text of a skeleton, or of one region of it, with each of its regions replaced."""
    parts = []
    for piece in pieces(name, inside):
        text = regions[piece.region] if piece.region else "\n".join(piece.lines)
        where = f'#line 1 "{piece.region}"' if piece.region else f'#line {piece.line} "kernels/{name}"'
        if text:
            parts.append(text if text.startswith("#line") else f"{where}\n{text}")
    return "\n".join(parts)
