"""Rows in lexicographic order: each collides and swaps with earlier rows of its slab, and a pass over faces follows.

One thread updates a slab, row after row. A swap across a periodic face or with a row of another slab is left to a
second pass over rows at such faces. Until then the link behaves like one at a wall: the population stays, reversed,
in the cell that it leaves.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from lbmtune.catalogue.schemes.scheme import Access, Phase
from lbmtune.codegen.cpu.direct.rows import GhostRow
from lbmtune.codegen.cpu.shared.streams import Stream, Streams
from lbmtune.codegen.skeleton import block
from lbmtune.lattice import Vector

_ROW = "number = z * ny + y"

MakeRow = Callable[[Streams], GhostRow]


class Swaps(Streams):
    """Streams of what cells swap with neighbours of earlier rows, or of their own."""

    @cached_property
    def theirs(self) -> tuple[Stream, ...]:
        """Return the place of each neighbour, or that of the cell itself if the swap is left to the second pass."""
        ways = zip(self.directions, self.writes, strict=True)
        return tuple(replace(s, name=f"s{i}") for i, s in ways if any(s.open.offset))

    @property
    def all(self) -> tuple[Stream, ...]:
        """Return the places of the neighbours."""
        return self.theirs

    def at_wall(self, stream: Stream, *, moving: bool = False, first_face: int = 2) -> str:
        """Return the condition that the swap is left to the second pass, or ''; gains have been added."""
        assert first_face == 2, "the ends of rows have ghost columns"
        return "" if moving else _closed_name(stream.link)

    def closed(self) -> list[str]:
        """Return the definitions of the conditions that swaps are left to the second pass."""
        links = {(s.link[1], s.link[2]) for s in self.theirs}
        return [_ROW, *(f"{_closed_name((0, *link))} = {_closed(*link)}" for link in sorted(links) if any(link))]


def swaps(streams: Streams) -> Swaps:
    """Return what cells swap after their collision."""
    phase = Phase(streams.phase.swaps, wall_term="none", collides=False)
    return Swaps(streams.case, streams.config, phase, streams.buffers)


def before(row: GhostRow) -> list[str]:
    """Return the lines before the loop that follow those of the collision."""
    ways = _swaps(row)
    fills = [row.fill_one(s) for s in ways.theirs if not _within(s) or row.has_cut_end(s)]
    return [*ways.neighbour_lines(), *ways.closed(), *row.bases(), *filter(None, fills)]


def stores(home: GhostRow, row: GhostRow) -> list[str]:
    """Return the stores of all populations: each reversed in its cell, then swaps with earlier cells."""
    streams, ways = home.streams, _swaps(row)
    own = dict(zip(streams.directions, streams.writes, strict=True))
    back = {_direction(row, s): s for s in ways.theirs}
    lines = [line for i, s in own.items() if i not in back for line in home.store(s, f"g{i}")]
    for i, s in back.items():
        lines += [f"t{i} = {row.load(s)}", *home.store(own[i], f"t{i}"), *row.store(s, f"g{i}")]
    return lines


def after(home: GhostRow, row: GhostRow) -> list[str]:
    """Return the lines after the loop."""
    own = dict(zip(home.streams.directions, home.streams.writes, strict=True))
    return [line for s in _swaps(row).theirs for line in _after(row, s, home.end(own[_direction(row, s)]))]


def faces(streams: Streams, make: MakeRow) -> list[str]:
    """Return the lines of a row in the second pass: swaps that the first pass left, unless a wall cuts the link."""
    groups: dict[tuple[int, int], list[Access]] = {}
    for mine, theirs in zip(streams.phase.swaps[::2], streams.phase.swaps[1::2], strict=True):
        groups.setdefault((mine.write.offset[1], mine.write.offset[2]), []).extend((mine, theirs))
    lines = [_ROW]
    for link, rows in groups.items():
        if any(link):
            phase = Phase(tuple(rows), wall_term="none", collides=False)
            row = make(replace(streams, phase=phase))
            lines += block(f"if {_closed(*link)}:", _moved(row))
    return lines


def _moved(row: GhostRow) -> list[str]:
    moves = [f"g{i} = f{i}" for i in row.streams.directions]
    body = [*row.fill_late(), *row.cell(), *row.loads(), *moves, *row.stores()]
    return [*row.before(), *block(f"for x in range(0, nx, {row.lanes}):", body), *row.after()]


def _swaps(row: GhostRow) -> Swaps:
    assert isinstance(row.streams, Swaps)
    return row.streams


def _direction(row: GhostRow, s: Stream) -> int:
    return row.streams.case.stencil.velocities.index(s.link)


def _within(s: Stream) -> bool:
    """Return whether the neighbour lies in the same row."""
    return not any(s.link[1:])


def _after(row: GhostRow, s: Stream, own: str) -> list[str]:
    """Return the copies of what the end cell stored in the ghost column to its places.

    own: index of the end cell's own place, which receives what comes from the other end of its row.
    """
    due = _within(s) and not row.has_cut_end(s)
    arrives = f"store_one({s.buffer}, {own}, load_one({s.buffer}, {row.image(s)}))" if due else ""
    return [*filter(None, (arrives, row.after_one(s)))]


def _closed_name(link: Vector) -> str:
    y, z = ({-1: "low", 0: "here", 1: "high"}[c] for c in link[1:])
    return f"closed_{y}_{z}" if any(link[1:]) else ""


def _closed(y: int, z: int) -> str:
    """Return the condition that the row at an offset is no earlier row of the slab."""
    beyond = {-1: "y == 0 or ", 0: "", 1: "y == ny - 1 or "}[y]
    row = {-1: " - 1", 0: "", 1: " + 1"}[y]
    return f"{beyond}number{' - ny' if z else ''}{row} < first"
