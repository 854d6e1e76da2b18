"""Rows that read cut links from flags in memory, for faces and solid cells alike.

A vector of cells without cut links is updated as in a periodic box. Other cells are updated one by one, each
population at its open or its cut place by the bit of its link. The ghost column of an end cell's cut link is not
refreshed, because the other end may belong to another row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.codegen.cpu.direct.rows import GhostRow, SelectedRow
from lbmtune.codegen.cpu.shared.streams import Stream, Streams
from lbmtune.codegen.skeleton import block
from lbmtune.lattice import negate

AT = "at = (z * ny + y) * nx"
"""Definition of the number of a row's first cell, which is the place of its word."""


def open_box(case: Case) -> Case:
    """Return the case without the walls that flags describe."""
    return replace(case, faces=("periodic",) * 6, patches=())


def bit(case: Case, s: Stream) -> int:
    """Return the mask of the flag of a stream's link; both directions of a link share a flag."""
    return 1 << case.stencil.velocities.index(negate(s.link))


def guarded(row: GhostRow, streams: Iterable[Stream], copy: Callable[[Stream], str]) -> list[str]:
    """Return the copies that fill what end cells read, or move what they wrote, by open links."""
    lines: list[str] = []
    for s in streams:
        cell = "at + nx - 1" if row.is_high(s) else "at"
        lines += block(f"if not flags[{cell}] & {bit(row.streams.case, s)}:", filter(None, [copy(s)]))
    return lines


@dataclass(frozen=True)
class FlaggedCells(SelectedRow):
    """Cells that are updated one by one. wraps: whether rows have no ghost columns."""

    wraps: bool = True

    def before(self) -> list[str]:
        """Return the lines before the loop, without flags of faces."""
        return self.places([AT])

    def cell(self) -> list[str]:
        """Return the words of the cell and the offsets of the cell and its neighbours; solid cells are skipped."""
        low, high = ("x - 1 if x > 0 else nx - 1", "x + 1 if x < nx - 1 else 0") if self.wraps else ("x - 1", "x + 1")
        lines = ["word = flags[at + x]"]
        lines += ["if word & 1:", "    continue"] if self.streams.case.geometry else []
        lines += ["moved = moving[at + x]"] if self.streams.gains else []
        return [*lines, *self.offsets(f"({low})", f"({high})")]

    def _at(self, s: Stream) -> str:
        return f"word & {bit(self.streams.case, s)}" if s.cut != s.open else ""

    def _gained(self, s: Stream) -> str:
        return f" + ({gain_here(self.streams, s)} if moved & {bit(self.streams.case, s)} else c0)" if s.gain else ""


def gain_here(streams: Streams, s: Stream) -> str:
    """Return what the cell's wall adds; the word of the cell selects one of several walls."""
    several = words_of(streams.case, streams.config).walls
    if not several:
        return s.gain
    each = [f"{s.gain}_{wall} if word >> {field.shift} & 1 else " for wall, field in several[:-1]]
    return f"({''.join(each)}{s.gain}_{several[-1][0]})"
