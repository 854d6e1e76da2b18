"""The function that updates a row of cells in one pass of a scheme."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import indent

import sympy

from lbmtune.catalogue.boundaries.cell_flags import tables
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.direct import flagged_rows, slabs
from lbmtune.codegen.cpu.direct.ghost_rows import LinearRow, converts, ghost_row, has_places
from lbmtune.codegen.cpu.direct.pairwise_update import pairwise_cell
from lbmtune.codegen.cpu.direct.rows import KEPT, LATE, GhostRow, Row, SelectedRow
from lbmtune.codegen.cpu.shared.collision import (
    collision_lines,
    completion_lines,
    needs_lanes,
    relaxation,
    shift_lines,
    wall_gain_lines,
)
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import LANES, access_names, buffer_names, parameter_names, row_name
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.passes import Pass
from lbmtune.codegen.skeleton import block, filled, indented

Fields = dict[str, str]


@dataclass(frozen=True)
class RowKernel:
    """Text of a row kernel. constants: receives the numbers that are printed.

    positions: parameters between those of the pass and y and z; prefetches: lines that prefetch more than the row;
    streaming: stores are non-temporal.
    """

    case: Case
    config: CpuConfig
    one: Pass
    constants: Constants
    positions: tuple[str, ...] = ()
    prefetches: tuple[str, ...] = ()
    streaming: bool = False

    def text(self) -> str:
        """Return the function; its loop has two parts if the far end of the row is filled between them."""
        name, fields = self._form()
        middle = self.row.fill_between()
        if middle:
            name = f"{name}_peeled"
            fields |= {"between": indented(middle, 2), "body": indent(fields["body"], " " * 4)}
        arguments = ", ".join((*parameter_names(self.case, self.config, self._phase), *self.positions))
        named = {"row": row_name(self.one), "arguments": arguments, "lanes": self.row.lanes}
        return filled(f"direct/{name}", **named, **fields).rstrip()

    @property
    def _phase(self) -> Phase:
        return self.one.phase

    @cached_property
    def row(self) -> Row:
        """Return the kind of row.

        A pass that reads no flags still needs the faces of a row with ghost columns: places of cut links may lie there.
        """
        if self._flagged and self.config.wrap == "select":
            return self._single_cells
        faces_known = self.config.flags == "compiled" or (not self._flagged and self.config.wrap == "ghost")
        streams = self._streams(self.case if faces_known else flagged_rows.open_box(self.case))
        if self.config.wrap == "select":
            return SelectedRow(streams, 1)
        return ghost_row(streams, "stream" if self.streaming else "store")

    @cached_property
    def _flagged(self) -> bool:
        return bool(tables(self.case, self.config, self._phase))

    @property
    def _single_cells(self) -> flagged_rows.FlaggedCells:
        ghosts = self.config.wrap == "ghost"
        one = "_one" if ghosts else ""
        return flagged_rows.FlaggedCells(self._streams(self.case), 1, one=one, wraps=not ghosts)

    def _streams(self, case: Case) -> Streams:
        source, target = buffer_names(self._phase)[0], KEPT if self._phase.blockwise else buffer_names(self._phase)[-1]
        return Streams(case, self.config, self._phase, (source, target))

    def _form(self) -> tuple[str, Fields]:
        if self._phase.collides and self.config.collision_passes != "one":
            return self._pairwise()
        if self._flagged and isinstance(self.row, GhostRow):
            return "row_flagged", self._vectors_and_cells(self.row)
        return "row", self._in_order() if self._phase.ordered else self._whole_cells()

    def _whole_cells(self) -> Fields:
        """Each cell loads all populations, collides and stores them."""
        row = self.row
        cell = [*row.fill_late(), *self._updated(row), *row.stores()]
        before = [*self._before(row), *row.before()]
        return {"before": indented(before, 1), "body": indented(cell, 2), "after": indented(row.after(), 1)}

    def _in_order(self) -> Fields:
        """Each cell collides, then swaps populations with cells of earlier rows."""
        row = self.row
        assert isinstance(row, GhostRow)
        other = ghost_row(slabs.swaps(row.streams))
        before = [*self._before(row), *row.before(), *slabs.before(other)]
        body = [*self._updated(row), *slabs.stores(row, other)]
        return {"before": indented(before, 1), "body": indented(body, 2), "after": indented(slabs.after(row, other), 1)}

    def _vectors_and_cells(self, row: GhostRow) -> Fields:
        """Vectors of cells without cut links, and the cells of other vectors one by one."""
        invariants, _ = self._collision
        cells = self._single_cells
        fill, late = (flagged_rows.guarded(row, row.filled(late=late), row.fill_one) for late in (False, True))
        before = [*invariants, *row.places(), flagged_rows.AT, *fill, *row.late()]
        vector = [*row.cell(), *row.prefetches(), *self.prefetches, *self._relaxed(row), *row.stores()]
        # a cell at a face with a condition has cut links, so it is one of the single cells
        return {
            "before": indented(before, 1),
            "body": indented(vector, 3),
            "late": indented(block(LATE, late), 2),
            "after": indented(flagged_rows.guarded(row, row.streams.writes, row.after_one), 1),
            "cells_before": indented([*self._before(cells), *cells.before()], 1),
            "cells_body": indented([*cells.cell(), *self._relaxed(cells, self._completion(cells)), *cells.stores()], 2),
        }

    def _pairwise(self) -> tuple[str, Fields]:
        """Cells that update one pair of directions after another (`codegen.cpu.direct.pairwise_update`)."""
        row, passes = self.row, self.config.collision_passes
        assert isinstance(row, LinearRow)
        cell = pairwise_cell(row, relaxation(self.case, passes).body, self.constants)
        fields = {
            "before": indented([*self._before(row), *row.before()], 1),
            "after": indented(row.after(), 1),
        }
        if passes != "pipelined":
            return "row", fields | {"body": indented(self._mixed(row, cell.two_passes()), 2)}
        return "row_pipelined", fields | {
            "first": indented([*row.fill_only(), *cell.first()], 1),
            "body": indented(self._mixed(row, cell.pipelined()), 2),
            "last": indented([*row.cell(), *cell.last()], 1),
        }

    def _mixed(self, row: GhostRow, lines: list[str]) -> list[str]:
        """Return the lines of a cell with its prefetches.

        These are spread out if registers or caches are busy: many outstanding prefetches stall each other and loads.
        """
        asks = [*row.prefetches(), *self.prefetches]
        spread = converts(self.config) or self.config.fused_steps > 1
        return [*row.fill_late(), *row.cell(), *(between(asks, lines) if spread else [*asks, *lines])]

    @cached_property
    def _collision(self) -> tuple[list[str], list[str]]:
        return collision_lines(self.case, self.config, self._phase, self.constants, self.config.collision_passes)

    def _before(self, row: Row) -> list[str]:
        """Return the invariants of the collision, and what moving walls add, worked out once per row."""
        gains = wall_gain_lines(row.streams, self.constants)
        if gains:
            self.constants.name(sympy.Integer(0))
        return [*self._collision[0], *gains]

    def _updated(self, row: Row) -> list[str]:
        asks = [*row.prefetches(), *self.prefetches]
        return [*row.cell(), *asks, *self._relaxed(row, self._completion(row))]

    def _relaxed(self, row: Row, completion: Sequence[str] = ()) -> list[str]:
        """Return the lines from the loads of a cell to its relaxed populations. completion: lines of faces."""
        lines = [*completion, *self._collision[1]]
        if self._phase.collides and not self.config.stored.shifted:
            minus, plus = shift_lines(self.case, self.constants)
            lines = [*minus, *lines, *plus]
        return [*row.loads(), *lines]

    def _completion(self, row: Row) -> list[str]:
        if not self._phase.collides:
            return []
        return completion_lines(self.case, row.lanes, self.constants, words_of(self.case, self.config))


def between(some: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return lines with some others spread evenly among them."""
    starts = [n * len(lines) // len(some) for n in range(len(some))]
    mixed = list(lines)
    for start, one in reversed([*zip(starts, some, strict=True)]):
        mixed.insert(start, one)
    return mixed


def support_modules(case: Case, config: CpuConfig) -> list[str]:
    """Return the support modules that row kernels import beside `simd`."""
    used = {"lanes": needs_lanes(case, config.lanes, by_word=False), "places": has_places(config)}
    return [name for name, is_used in used.items() if is_used]


def module_names(
    config: CpuConfig, support: list[str], *, streaming: bool = False, prefetch_rows: bool = False
) -> list[str]:
    """Return lines that name the functions which row kernels call."""
    ghosts = config.wrap == "ghost"
    grouped = config.memory.run > 1 and ghosts and bool(config.vector_bits)
    prefetch = bool(config.prefetch_propagated or config.prefetch_local or prefetch_rows)
    named = {"lanes": LANES, "places": "place = places.place"}
    names = access_names(streaming=streaming, grouped=grouped, ends=ghosts, prefetch=prefetch)
    return [*names, *(named[module] for module in support)]
