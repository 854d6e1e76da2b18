"""Rows of the moments wavefront: their places in the rings, and the lines before and inside their loops.

A row of a ring holds what its cells send in one array after the other, with a margin at both ends. What arrives is
read from adjacent rows and, along x, from the adjacent cell. Row r of plane p of a tile has the number
p * (rows of a tile) + r, which gives its place in each ring. Each step lies a row behind the one before it, so what
arrives from c_y rows below was sent by the row whose number is smaller by 1 + c_y.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from lbmtune.catalogue.families.cpu.moments_wavefront import (
    EDGE_LAG,
    EDGE_ROWS,
    MARGIN,
    MomentsWavefront,
    edge_planes,
    pitch,
    reach,
    ring_rows,
    ring_values,
    stage_values,
    width,
)
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.codegen.cpu.moments_wavefront.cell import Carried, Cell
from lbmtune.codegen.moment_stages import Row
from lbmtune.codegen.skeleton import block
from lbmtune.codegen.trace import Traced, plain


@dataclass(frozen=True)
class Rows:
    """Lines before and inside the loops along x."""

    case: Case
    config: MomentsWavefront
    cell: Cell

    @cached_property
    def _sent(self) -> dict[int, list[Carried]]:
        """Values that are sent along each c_z, in the order of a row."""
        return {c_z: [one for one in self.cell.carried if one.row[1] == c_z] for c_z in (-1, 0, 1)}

    def before(self, cut: list[str], cut_last: list[str]) -> dict[str, list[str]]:
        """Return the lines before each loop: invariants and starts of rows.

        cut, cut_last: copies of what cut links return, before a step and before the last one.
        """
        parameters = self.cell.before(self.config)
        last = f"before = {(self.config.steps - 1) * stage_values(self.case, self.config)}"
        return {
            "enter_before": [*parameters, *self.stored_row(), "after = 0", *self._written()],
            "relay_before": [*parameters, *self.read(), *cut, *self._written()],
            "leave_before": [*self.stored_row(), last, *self.read(), *cut_last],
        }

    def bodies(self) -> dict[str, list[str]]:
        """Return the lines inside each loop, and those that join the ends of a row as long as the domain."""
        left = (f"store(rings, {at}, {name})" for name, at in self._places("to"))
        relaxed = [*self.cell.relax(), *self.cell.stage.spread(), *left]
        read = (f"{name} = load(rings, {at})" for name, at in self._places("from", ahead=1))
        arrived = [*read, *self.cell.gather()]
        kept = list(zip(self.cell.moments, self.places("y", "z"), strict=True))
        prefetched = self.places("next_y", "next_z") if self.config.prefetch_rows else []
        store = "stream" if self.config.streaming_stores else "store"
        return {
            "enter_body": [
                *(f"prefetch(source, {at})" for at in prefetched),
                *(f"{name} = load(source, {at})" for name, at in kept),
                *relaxed,
            ],
            "relay_body": [*arrived, *relaxed],
            "leave_body": [*arrived, *(f"{store}(target, {at}, {name})" for name, at in kept)],
            "ends": list(self._ends()),
        }

    def stored_row(self) -> list[str]:
        """Return the definition of the pitch of a stored row."""
        stored = self.config.frame(self.case.stencil).extents(Domain(*(Traced(n, "//") for n in ("nx", "ny", "nz"))))
        return [f"pitch = {plain(stored.x)}"]

    def places(self, row: str, plane: str) -> list[str]:
        """Return the elements of the moments of a cell."""
        extents = Extents(Traced("pitch", "//"), Traced("ny", "//"), Traced("nz", "//"), len(self.cell.moments))
        x, y, z = (Traced(name, "//") for name in ("at", row, plane))
        return [plain(self.config.value_index(k, x, y, z, extents, self.case.stencil)) for k in range(extents.q)]

    def read(self) -> list[str]:
        """Return the starts of the rows that are read; the first rows of a tile read from the tile before."""
        lines = self._numbers("before", f"first // {self._width} - 1")
        for c_y, c_z in self._all_rows:
            ring = f"before + {self.in_ring(c_z, earlier('number', c_y + self._reach + c_z * self._width))}"
            edge = self.in_edges(c_z, earlier("at_edge", c_z), f"({c_y} - row)")
            lines.append(f"{row_place('from', (c_y, c_z))} = {self._either(c_y, ring, f'row > {c_y}', edge)}")
        return lines

    def _written(self) -> list[str]:
        """Return the starts of the rows that are written; the last rows of a tile write for the next tile."""
        lines, last = self._numbers("after", f"first // {self._width}"), self._width - 1
        for c_y, c_z in self._all_rows:
            ring, edge = f"after + {self.in_ring(c_z, 'number')}", self.in_edges(c_z, "at_edge", f"({last} - row)")
            lines.append(f"{row_place('to', (c_y, c_z))} = {self._either(c_y, ring, f'row < {last - c_y}', edge)}")
        return lines

    def _either(self, c_y: int, ring: str, within: str, edge: str) -> str:
        """Return the start of a row in its ring if it lies within the tile, else in the edges."""
        return f"{ring} if {within} else edges + {edge}" if self._reach and c_y >= 0 else ring

    def _numbers(self, stage: str, tile: str) -> list[str]:
        """Return the number of a row, and the start of the last rows of a tile's planes."""
        lines = [f"number = plane * {self._width} + row"]
        if self._reach:
            lines.append(f"edges = {stage} + {ring_values(self.case, self.config)}")
            lines.append(f"at_edge = plane - {EDGE_LAG} * ({tile})")
        return lines

    def own(self, links: Sequence[Carried]) -> list[str]:
        """Return the starts of the rows that hold what the cells of a row sent themselves, for some directions."""
        lines = []
        for c_y, c_z in dict.fromkeys(one.row for one in links):
            start = f"before + {self.in_ring(c_z, earlier('number', self._reach))}"
            if self._reach and c_y > 0:
                here = self.in_edges(c_z, f"(at_edge - {EDGE_LAG})", "1")
                start = f"edges + {here} if row == {self._width - 1} else {start}"
            if self._reach:
                start = f"edges + {self.in_edges(c_z, 'at_edge', '0')} if row == 0 else {start}"
            lines.append(f"{row_place('own', (c_y, c_z))} = {start}")
        return lines

    def kept(self, links: Sequence[Carried]) -> list[str]:
        """Return the copy of what the last row of a tile sent backwards, which its own cells read in the next tile."""
        lines = []
        for one in links:
            if self._reach and one.row[0] < 0:
                start = f"edges + {self.in_edges(one.row[1], 'at_edge', '0')} + {self.array(one)} + x"
                lines.append(f"store(rings, {start}, load(rings, {row_place('to', one.row)} + {self.array(one)} + x))")
        return block(f"if row == {self._width - 1}:", block(f"for x in range(low, high, {self.config.lanes}):", lines))

    @property
    def _reach(self) -> int:
        return reach(self.case.stencil)

    @property
    def _width(self) -> int:
        return width(self.case.stencil, self.config)

    @property
    def _all_rows(self) -> list[Row]:
        return list(dict.fromkeys(one.row for one in self.cell.carried))

    def in_ring(self, c_z: int, number: str) -> str:
        """Return the first cell of a row in the ring of what is sent along c_z."""
        sizes = {one: ring_rows(self.case, self.config, one) for one in self._sent}
        first = sum(sizes[one] * self._row_values(one) for one in self._sent if one < c_z)
        return f"{number} % {sizes[c_z]} * {self._row_values(c_z)} + {first + 2 * MARGIN}"

    def in_edges(self, c_z: int, plane: str, row: str) -> str:
        """Return the first cell of a row that is kept for the next tile."""
        values = sum(map(self._row_values, self._sent))
        first = sum(self._row_values(one) for one in self._sent if one < c_z)
        places = edge_planes(self.case.stencil, self.config)
        return f"{plane} % {places} * {EDGE_ROWS * values} + {row} * {values} + {first + 2 * MARGIN}"

    def _row_values(self, c_z: int) -> int:
        """Return the values of a row of what is sent along c_z."""
        return len(self._sent[c_z]) * pitch(self.config)

    def array(self, one: Carried) -> int:
        """Return the offset of a value's array in its row."""
        return self._sent[one.row[1]].index(one) * pitch(self.config)

    def _places(self, what: str, ahead: int = 0) -> list[tuple[str, str]]:
        """Return name and place of each value that cells send. ahead: cells by which they are read along x."""
        every = ((one, self.array(one) - ahead * one.along_x) for one in self.cell.carried)
        return [(one.name, f"{row_place(what, one.row)} + {at} + x") for one, at in every]

    def _ends(self) -> Iterator[str]:
        for one in self.cell.carried:
            start = f"{row_place('to', one.row)} + {self.array(one)}"
            there, back = (f"{start} - 1", f"{start} + nx - 1") if one.along_x > 0 else (f"{start} + nx", start)
            if one.along_x:
                yield f"store_one(rings, {there}, load_one(rings, {back}))"


def earlier(name: str, number: int) -> str:
    """Return the text of a name minus a number."""
    if not number:
        return name
    return f"({name} - {number})" if number > 0 else f"({name} + {-number})"


def row_place(what: str, row: Row) -> str:
    """Return the name of a row's start: to_uh goes up along y and stays in its plane."""
    return f"{what}_{''.join('dhu'[1 + c] for c in row)}"
