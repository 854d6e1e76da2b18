"""Blocks of rows with rings of ghost rows: the refresh of the rings, and the copy of updated rows to their places.

One thread updates a block, row after row. An updated row is kept until no other row of the block reads what it
replaces, that is, until the last row that its cells reach has been updated.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from lbmtune.catalogue.schemes.scheme import Access, reach
from lbmtune.codegen.cpu.direct.rows import KEPT, Row
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.skeleton import block


def behind(streams: Streams) -> str:
    """Return the rows of a block that are updated between a row and its copy to its place."""
    rows, planes = reach(streams.phase)
    return f"{rows} + {planes} * rows_y" if planes else str(rows)


def kept_rows(streams: Streams) -> int:
    """Return the most rows that a thread keeps, summed over all populations."""
    rows, planes = reach(streams.phase)
    return (rows + planes * streams.config.tile_y + 1) * streams.case.stencil.q


def home_before(streams: Streams) -> list[str]:
    """Return the lines before the loop that copies a row to its place."""
    starts = [f"p{s.name} = {streams.base(s.open)}" for s in streams.writes]
    here = [line for line in streams.neighbour_lines() if "_here =" in line]
    return [*streams.extent_lines(), *here, *starts]


def home_body(row: Row) -> list[str]:
    """Return the lines inside the loop that copies a row to its place."""
    streams = row.streams
    moves = (f"store(field, p{s.name} + here, load({KEPT}, {row.kept(s)}))" for s in streams.writes)
    return [f"here = {streams.along_x('x')}", *moves]


def ring_before(streams: Streams) -> list[str]:
    """Return the lines before the copies to the ring: its rows, and the rows that they stand for."""
    return [*streams.extent_lines(), *streams.neighbour_lines(), *streams.image_lines()]


def ring_copies(streams: Streams, lanes: int) -> list[str]:
    """Return the copies to the ring of what a row at the rim of its block reads, from the rows that it stands for.

    Populations of cut links are copied, too, and never read.
    """
    crossing = (access for access in streams.phase.accesses if any(access.read.offset[1:]))
    groups = groupby(sorted(crossing, key=_rows), key=_rows)
    return [line for rows, accesses in groups for line in _copied(streams, rows, accesses, lanes)]


def _rows(access: Access) -> tuple[int, int]:
    return access.read.offset[1], access.read.offset[2]


def _copied(streams: Streams, rows: tuple[int, int], accesses: Iterable[Access], lanes: int) -> list[str]:
    places = {access.direction: access.read for access in accesses}
    starts = [f"to{i}, from{i} = {streams.base(p)}, {streams.base(p, 'image_')}" for i, p in places.items()]
    moves = [f"store(field, to{i} + here, load(field, from{i} + here))" for i in places]
    loop = block(f"for x in range(0, nx, {lanes}):", [f"here = {streams.along_x('x')}", *moves])
    return block(f"if {_at_rim(streams, rows)}:", [*starts, *loop])


def _at_rim(streams: Streams, rows: tuple[int, int]) -> str:
    """Return the condition that the row lies at a rim of its block beyond which it reads."""
    tiles = zip("yz", (streams.config.tile_y, streams.config.tile_z), rows, strict=True)
    return " or ".join(_last(axis, tile, offset) for axis, tile, offset in tiles if offset)


def _last(axis: str, tile: int, offset: int) -> str:
    return f"{axis} % {tile} == 0" if offset < 0 else f"{axis} % {tile} == {tile - 1} or {axis} == n{axis} - 1"
