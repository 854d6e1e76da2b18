"""How the two ends of a row are dealt with, and what a load and a store look like: one class for each way.

Everything about y and z is settled before the loop along x: the base `p` of a stream is that of its open place,
or of its cut place in a row where a wall at a y or z face cuts its link. Ends of rows:

- `LinearRow`: cell x lies at p + x * step. Before the loop, and for the far end of the row before its last cells,
  the element that the end cell is going to read (in the ghost column, or wherever its link would be) is filled; after
  the loop, what was written there is moved to where it belongs. One row alone uses a place of a slot and a row, so
  rows may run in any order and at once.
- `GroupedRow`: the same for layouts that cut rows into runs (AoSoA, tiles), where the offset of a cell in its row is
  no multiple of a step.
- `SelectedRow`: no ghost columns; each cell chooses its index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lbmtune.codegen.cpu.shared.streams import Stream, Streams

KEPT = "kept"
"""Name of the rows that a thread keeps until all have read what they replace."""
LATE = "if x == late:"
"""Condition under which the loop fills the far end of a row."""
BETWEEN = "if part == 1:"
"""The same, where the loop has two parts and the far end is filled between them."""
SHIFTED = {-1: "low", 0: "here", 1: "high"}


@dataclass(frozen=True)
class Row(ABC):
    """Lines before, inside and after the loop.

    lanes: cells per access; leave: name of the store function; one: suffix of those that move one value at a time.
    """

    streams: Streams
    lanes: int
    leave: str = "store"
    one: str = ""

    def before(self) -> list[str]:
        """Lines ahead of the loop."""
        s = self.streams
        flags = [s.test(face) for face in s.faces_used() if face > 1]
        return [*s.extent_lines(), *s.neighbour_lines(), *flags, *self.bases(), *self.row_gains(), *self.fill()]

    def loads(self) -> list[str]:
        """Lines that set f0, f1, ..."""
        return [f"f{i} = {self.load(s)}" for i, s in zip(self.streams.directions, self.streams.reads, strict=True)]

    def fill_late(self) -> list[str]:
        """Lines at the top of the loop that make ready what the last cells read."""
        return []

    def fill_between(self) -> list[str]:
        """Lines between the two parts of a loop that do so."""
        return []

    def prefetches(self) -> list[str]:
        """Lines that ask for what cells further on will read."""
        wanted = ((s, self.streams.ahead(s)) for s in self.streams.reads)
        return [f"prefetch({self.ahead(s, cells)})" for s, cells in wanted if cells]

    def stores(self) -> list[str]:
        """Lines that leave g0, g1, ..."""
        leaving = zip(self.streams.directions, self.streams.writes, strict=True)
        if self.streams.phase.blockwise:
            return [f"store{self.one}({KEPT}, {self.kept(s)}, g{i})" for i, s in leaving]
        return [line for i, s in leaving for line in self.store(s, f"g{i}")]

    def kept(self, s: Stream) -> str:
        """Index of a population among the rows that a thread keeps."""
        return f"(line * {self.streams.case.stencil.q} + {s.open.slot}) * nx + x"

    @abstractmethod
    def bases(self) -> list[str]:
        """Definitions of the bases."""

    @abstractmethod
    def row_gains(self) -> list[str]:
        """Definitions of what moving walls add in this row."""

    @abstractmethod
    def fill(self) -> list[str]:
        """What end cells will read."""

    @abstractmethod
    def cell(self) -> list[str]:
        """Lines at the top of the loop."""

    @abstractmethod
    def load(self, s: Stream) -> str:
        """Expression for a population."""

    def ahead(self, s: Stream, cells: int) -> str:
        """Array and index of what the cell so many cells on reads, give or take the shift of its place."""
        return f"{s.buffer}, p{s.name} + {self.streams.along_x(f'(x + {cells})')}"

    @abstractmethod
    def store(self, s: Stream, value: str) -> list[str]:
        """Lines that leave it."""

    @abstractmethod
    def after(self) -> list[str]:
        """Lines behind the loop."""


@dataclass(frozen=True)
class GhostRow(Row):
    """Rows with a ghost column at each end."""

    def before_open(self) -> list[str]:
        """Lines ahead of the loop where no wall is known, but for what end cells read."""
        return [*self.streams.extent_lines(), *self.streams.neighbour_lines(), *self.bases()]

    def row_gains(self) -> list[str]:
        """Every cell of a row at a moving y or z face gains the same."""
        return unique(f"m{s.name} = {s.gain} if {at} else c0" for s in self.streams.all if (at := self._moving(s)))

    def fill(self) -> list[str]:
        """Copies from the periodic image, or from the place of the cut link, that are due ahead of the loop."""
        return [*map(self.fill_one, self.filled(late=False)), *self.late()]

    def fill_late(self) -> list[str]:
        """Those that the loop makes."""
        return [] if self._between else block(LATE, [*map(self.fill_one, self.filled(late=True))])

    def fill_between(self) -> list[str]:
        """Those that are made between its two parts."""
        return block(BETWEEN, [*map(self.fill_one, self.filled(late=True))]) if self._between else []

    @property
    def _between(self) -> bool:
        return bool(self.streams.config.row_tail == "peeled")

    def fill_only(self) -> list[str]:
        """Lines ahead of what is read before the loop, where the first cells are the last ones too."""
        return block(f"if nx == {self.lanes}:", [*map(self.fill_one, self.filled(late=True))])

    def late(self) -> list[str]:
        """Where the loop fills the far end: so far ahead of its last cells that no load waits for these stores."""
        vectors = 3 if self.streams.config.collision_passes == "pipelined" else 2
        return [f"late = max(nx - {vectors * self.lanes}, 0)"] if self.filled(late=True) else []

    def filled(self, *, late: bool) -> list[Stream]:
        """Streams that need a copy: late, those that leave the row at its far end.

        Ahead of the loop the stores of these would miss all caches, and hold back those of the first cells.
        """
        return [s for s in self.streams.reads if self.fill_one(s) and late == (self._fills_late and self.is_high(s))]

    @property
    def _fills_late(self) -> bool:
        """Single cells are left to the compiler, which makes vectors of them where no condition stands in their way."""
        return self.lanes > 1 and not self.streams.phase.ordered

    def after(self) -> list[str]:
        """Copies back."""
        return [text for s in self.streams.writes if (text := self.after_one(s))]

    def fill_one(self, s: Stream) -> str:
        """The copy that a stream needs before the loop, or ''."""
        end, origin = self.end(s), self._origin(s)
        return self._copy(s, end, origin) if origin else ""

    def after_one(self, s: Stream) -> str:
        """The copy that it needs behind the loop, or ''."""
        end, origin = self.end(s), self._origin(s)
        return self._copy(s, origin, end) if origin else ""

    def gained(self, s: Stream) -> str:
        """What is added to the population in every cell of the row, as text."""
        return f" + m{s.name}" if self._moving(s) else ""

    def is_high(self, s: Stream) -> bool:
        """Whether the stream leaves the row at its far end."""
        return (s.open.offset[0] or s.link[0]) > 0

    def has_cut_end(self, s: Stream) -> bool:
        """Whether the end cell's place differs from the one that the loop would use."""
        return self.streams.x_face(s) != "periodic" and s.cut != s.open

    def _moving(self, s: Stream) -> str:
        return self.streams.at_wall(s, moving=True) if s.gain else ""

    def _origin(self, s: Stream) -> str:
        """The other index of the copy at the end of the row, or '' where none is needed."""
        if self.has_cut_end(s):
            return self.cut_end(s)
        if self.streams.x_face(s) == "periodic" and s.open.offset[0]:
            return self.image(s)
        return self.end(s) if self._end_gain(s) else ""

    def _copy(self, s: Stream, target: str, source: str) -> str:
        return f"store_one({s.buffer}, {target}, load_one({s.buffer}, {source}){self._end_gain(s)})"

    def _end_gain(self, s: Stream) -> str:
        """What the end cell gains from a moving x face, unless the whole row has gained it."""
        if not s.gain or self.streams.x_face(s) != "moving":
            return ""
        at = self._moving(s)
        return f" + (c0 if {at} else {s.gain})" if at else f" + {s.gain}"

    @abstractmethod
    def end(self, s: Stream) -> str:
        """Index that the loop uses for the end cell of the stream."""

    @abstractmethod
    def cut_end(self, s: Stream) -> str:
        """Index of the end cell's cut place."""

    @abstractmethod
    def image(self, s: Stream) -> str:
        """Index of the periodic image of `end`; `end` itself in a row whose cut place is no image of another."""


@dataclass(frozen=True)
class SelectedRow(Row):
    """Neighbours along x by selecting indices, one cell at a time."""

    def bases(self) -> list[str]:
        """The open place, p, and the cut one, q."""
        return unique(line for s in self.streams.all for line in self._base(s))

    def row_gains(self) -> list[str]:
        """Each cell selects its own."""
        return []

    def fill(self) -> list[str]:
        """There is nothing to fill."""
        return []

    def after(self) -> list[str]:
        """There is nothing to move."""
        return []

    def cell(self) -> list[str]:
        """Offsets of the cell and its neighbours, and whether it lies at an end."""
        cells = (("low", "(x - 1 if x > 0 else nx - 1)"), ("here", "x"), ("high", "(x + 1 if x < nx - 1 else 0)"))
        flags = [self.streams.test(face) for face in self.streams.faces_used() if face < 2]
        return [*(f"{name} = {self.streams.along_x(x)}" for name, x in cells), *flags]

    def load(self, s: Stream) -> str:
        """From the selected index."""
        return f"load({s.buffer}, {self._index(s)}){self._gained(s)}"

    def store(self, s: Stream, value: str) -> list[str]:
        """To the selected index."""
        return [f"store({s.buffer}, {self._index(s)}, {value}{self._gained(s)})"]

    def _base(self, s: Stream) -> list[str]:
        cut = [f"q{s.name} = {self.streams.base(s.cut)}"] if self._at(s) else []
        return [f"p{s.name} = {self.streams.base(s.open)}", *cut]

    def _at(self, s: Stream) -> str:
        return self.streams.at_wall(s, first_face=0) if s.cut != s.open else ""

    def _index(self, s: Stream) -> str:
        opened, closed = f"p{s.name} + {SHIFTED[s.open.offset[0]]}", f"q{s.name} + {SHIFTED[s.cut.offset[0]]}"
        return f"({closed} if {at} else {opened})" if (at := self._at(s)) else opened

    def _gained(self, s: Stream) -> str:
        return f" + ({s.gain} if {self.streams.at_wall(s, moving=True, first_face=0)} else c0)" if s.gain else ""


def block(head: str, lines: Sequence[str]) -> list[str]:
    """Lines inside a block of Python; none without any."""
    return [head, *(f"    {line}" for line in lines)] if lines else []


def unique(lines: Iterable[str]) -> list[str]:
    """Return the lines in order, each once."""
    return list(dict.fromkeys(lines))
