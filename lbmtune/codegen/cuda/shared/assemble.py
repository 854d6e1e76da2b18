"""Assembly of kernel texts: the regions of a skeleton are filled, and `#line` marks lead back to the file.

A region lies between `//@begin NAME` and `//@end NAME`. Its lines are an example, so that the file compiles as it is,
and are always replaced. A region that starts with `//@default NAME` keeps its lines unless a text is given for it.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from lbmtune.codegen.skeleton import skeleton

_MARK = re.compile(r"\s*//@(begin|default|end) (\w+)\s*")


class Piece(NamedTuple):
    """Lines `first` to `last` (exclusive, from 0) of a skeleton: plain ones (no region), or the inside of a region."""

    region: str
    optional: bool
    first: int
    last: int


def fill(name: str, regions: Mapping[str, str], inside: str = "") -> str:
    """Return the text of kernels/cuda/<name>, or of its region `inside`, with all regions filled.

    Raises KeyError if `regions` lacks a region that has no default.
    """
    return _filled(name, regions, *_range(name, inside))


def variants(name: str, regions: Mapping[str, str], inside: str = "variants") -> dict[str, str]:
    """Return the filled regions within region `inside` of kernels/cuda/<name>, by name.

    They replace regions of the same names in another skeleton.
    """
    pieces = _pieces(name, *_range(name, inside))
    return {piece.region: _filled(name, regions, piece.first, piece.last) for piece in pieces if piece.region}


def _filled(name: str, regions: Mapping[str, str], first: int, last: int) -> str:
    texts = (_text(name, regions, piece) for piece in _pieces(name, first, last))
    return "\n".join(text for text in texts if text)


def _text(name: str, regions: Mapping[str, str], piece: Piece) -> str:
    if not piece.region:
        return "\n".join((f'#line {piece.first + 1} "kernels/cuda/{name}"', *_lines(name)[piece.first : piece.last]))
    if piece.optional and piece.region not in regions:
        return _filled(name, regions, piece.first, piece.last)
    text = regions[piece.region]
    return text if not text or text.startswith("#line") else f'#line 1 "{piece.region}"\n{text}'


@cache
def _lines(name: str) -> tuple[str, ...]:
    return tuple(skeleton(f"cuda/{name}").splitlines())


@cache
def _range(name: str, inside: str) -> tuple[int, int]:
    """Return the lines of a whole skeleton, or those inside the first region of a name."""
    lines = _lines(name)
    return _inside(lines, inside, 0) if inside else (0, len(lines))


def _inside(lines: tuple[str, ...], region: str, start: int) -> tuple[int, int]:
    begins = (f"//@begin {region}", f"//@default {region}")
    begin = next(n for n in range(start, len(lines)) if lines[n].strip() in begins)
    return begin + 1, next(n for n in range(begin, len(lines)) if lines[n].strip() == f"//@end {region}")


@cache
def _pieces(name: str, first: int, last: int) -> tuple[Piece, ...]:
    """Cut lines of a skeleton at their outermost regions."""
    lines, found, start = _lines(name), list[Piece](), first
    for position in range(first, last):
        mark = _MARK.fullmatch(lines[position]) if position >= start else None
        if mark:
            begin, end = _inside(lines, mark[2], position)
            found += [Piece("", False, start, position), Piece(mark[2], mark[1] == "default", begin, end)]
            start = end + 1
    found.append(Piece("", False, start, last))
    return tuple(piece for piece in found if piece.region or piece.first < piece.last)
