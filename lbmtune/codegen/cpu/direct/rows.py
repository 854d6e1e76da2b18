"""Rows of cells: how their two ends are treated, and what a load and a store look like, one class per way.

Everything about y and z is computed before the loop along x. The base `p` of a stream is that of its open place, or
that of its cut place if a wall at a y or z face cuts its link. Ends of rows:

- `LinearRow`: cell x lies at p + x * step. The element that an end cell reads, in the ghost column or at the place of
  its cut link, is filled before the loop (at the far end: before the last cells). After the loop, what was written
  there is copied to its own place. Each place of a slot and a row is used by one row, so rows may run concurrently.
- `GroupedRow`: the same for layouts that cut rows into runs (AoSoA, tiles), so that cell x is no multiple of a step.
- `SelectedRow`: no ghost columns; each cell selects its index.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from lbmtune.codegen.cpu.shared.streams import Stream, Streams
from lbmtune.codegen.skeleton import block

KEPT = "kept"
"""Name of the updated rows that a thread keeps until all rows have read what they replace."""
LATE = "if x == late:"
"""Condition under which the loop fills the far end of a row."""
BETWEEN = "if part == 1:"
"""Condition under which a loop in two parts fills the far end between them."""
SHIFTED = {-1: "low", 0: "here", 1: "high"}


@dataclass(frozen=True)
class Row(ABC):
    """Lines before, inside and after the loop.

    lanes: cells per access; leave: name of the function that stores to the cells themselves; one: suffix of functions
    that move single values.
    """

    streams: Streams
    lanes: int
    leave: str = "store"
    one: str = ""

    def before(self) -> list[str]:
        """Return the lines before the loop."""
        flags = [self.streams.test(face) for face in self.streams.faces_used() if face > 1]
        return [*self.places(flags), *self.row_gains(), *self.fill()]

    def places(self, between: Iterable[str] = ()) -> list[str]:
        """Return the definitions of extents, rows and bases, with further lines before the bases."""
        return [*self.streams.extent_lines(), *self.streams.neighbour_lines(), *between, *self.bases()]

    def loads(self) -> list[str]:
        """Return the lines that load f0, f1, ..."""
        return [f"f{i} = {self.load(s)}" for i, s in zip(self.streams.directions, self.streams.reads, strict=True)]

    def fill_late(self) -> list[str]:
        """Return the lines at the top of the loop that fill what the last cells read."""
        return []

    def fill_between(self) -> list[str]:
        """Return the lines between the two parts of a loop that fill what the last cells read."""
        return []

    def prefetches(self) -> list[str]:
        """Return the lines that prefetch what later cells of the row read."""
        distances = ((s, self.streams.ahead(s)) for s in self.streams.reads)
        return [f"prefetch({self.ahead(s, cells)})" for s, cells in distances if cells]

    def stores(self) -> list[str]:
        """Return the lines that store g0, g1, ..."""
        leaving = zip(self.streams.directions, self.streams.writes, strict=True)
        if self.streams.phase.blockwise:
            return [f"store{self.one}({KEPT}, {self.kept(s)}, g{i})" for i, s in leaving]
        return [line for i, s in leaving for line in self.store(s, f"g{i}")]

    def kept(self, s: Stream) -> str:
        """Return the index of a population among the rows that a thread keeps."""
        return f"(line * {self.streams.case.stencil.q} + {s.open.slot}) * nx + x"

    def bases(self) -> list[str]:
        """Return the definitions of the bases."""
        return unique(line for s in self.streams.all for line in self._base(s))

    @abstractmethod
    def _base(self, s: Stream) -> list[str]:
        """Return the base of the row's place, p, and that of the cut place, q, if it is needed."""

    def row_gains(self) -> list[str]:
        """Return the definitions of what moving walls add in this row."""
        return []

    def fill(self) -> list[str]:
        """Return the lines that fill what end cells read."""
        return []

    def cell(self) -> list[str]:
        """Return the lines at the top of the loop."""
        return []

    def offsets(self, low: str, high: str) -> list[str]:
        """Return the definitions of the offsets of cell x and of those next to it, low and high."""
        return [f"{name} = {self.streams.along_x(x)}" for name, x in (("low", low), ("here", "x"), ("high", high))]

    @abstractmethod
    def load(self, s: Stream) -> str:
        """Return the expression of a population."""

    def ahead(self, s: Stream, cells: int) -> str:
        """Return array and index of what a later cell reads, without the shift of its place."""
        return f"{s.buffer}, p{s.name} + {self.streams.along_x(f'(x + {cells})')}"

    @abstractmethod
    def store(self, s: Stream, value: str) -> list[str]:
        """Return the lines that store a population."""

    def after(self) -> list[str]:
        """Return the lines after the loop."""
        return []


@dataclass(frozen=True)
class GhostRow(Row):
    """Rows with a ghost column at each end."""

    def row_gains(self) -> list[str]:
        """Return the gains at moving y and z faces, which are the same in every cell of a row."""
        return unique(f"m{s.name} = {s.gain} if {at} else c0" for s in self.streams.all if (at := self._moving(s)))

    def fill(self) -> list[str]:
        """Return the copies before the loop from the periodic image, or from the place of the cut link."""
        return [*map(self.fill_one, self.filled(late=False)), *self.late()]

    def fill_late(self) -> list[str]:
        """Return the copies inside the loop."""
        return [] if self._between else block(LATE, [*map(self.fill_one, self.filled(late=True))])

    def fill_between(self) -> list[str]:
        """Return the copies between the two parts of the loop."""
        return block(BETWEEN, [*map(self.fill_one, self.filled(late=True))]) if self._between else []

    @property
    def _between(self) -> bool:
        return bool(self.streams.config.row_tail == "peeled")

    def fill_only(self) -> list[str]:
        """Return the copies before the loop of a row whose first cells are also its last ones."""
        return block(f"if nx == {self.lanes}:", [*map(self.fill_one, self.filled(late=True))])

    def late(self) -> list[str]:
        """Return the definition of the x at which the far end is filled, early enough that loads do not stall on it."""
        vectors = 3 if self.streams.config.collision_passes == "pipelined" else 2
        return [f"late = max(nx - {vectors * self.lanes}, 0)"] if self.filled(late=True) else []

    def filled(self, *, late: bool) -> list[Stream]:
        """Return the streams that need a copy: before the loop, or late, those that leave the row at its far end.

        Before the loop the stores at the far end would miss all caches and delay those of the first cells.
        """
        # a condition inside the loop would keep the compiler from vectorising single cells
        fills_late = self.lanes > 1 and not self.streams.phase.ordered
        return [s for s in self.streams.reads if self.fill_one(s) and late == (fills_late and self.is_high(s))]

    def after(self) -> list[str]:
        """Return the copies after the loop."""
        return [text for s in self.streams.writes if (text := self.after_one(s))]

    def fill_one(self, s: Stream) -> str:
        """Return the copy that a stream needs before its end cell reads, or ''."""
        end, origin = self.end(s), self._origin(s)
        return self._copy(s, end, origin) if origin else ""

    def after_one(self, s: Stream) -> str:
        """Return the copy that a stream needs after the loop, or ''."""
        end, origin = self.end(s), self._origin(s)
        return self._copy(s, origin, end) if origin else ""

    def gained(self, s: Stream) -> str:
        """Return the term that every cell of the row adds to a population, or ''."""
        return f" + m{s.name}" if self._moving(s) else ""

    def is_high(self, s: Stream) -> bool:
        """Return whether the stream leaves the row at its far end."""
        return (s.open.offset[0] or s.link[0]) > 0

    def has_cut_end(self, s: Stream) -> bool:
        """Return whether the end cell's place differs from the one that the loop would use."""
        return self.streams.x_face(s) != "periodic" and s.cut != s.open

    def _moving(self, s: Stream) -> str:
        return self.streams.at_wall(s, moving=True) if s.gain else ""

    def _origin(self, s: Stream) -> str:
        """Return the other index of the copy at the end of the row, or '' if none is needed."""
        if self.has_cut_end(s):
            return self.cut_end(s)
        if self.streams.x_face(s) == "periodic" and s.open.offset[0]:
            return self.image(s)
        return self.end(s) if self._end_gain(s) else ""

    def _copy(self, s: Stream, target: str, source: str) -> str:
        return f"store_one({s.buffer}, {target}, load_one({s.buffer}, {source}){self._end_gain(s)})"

    def _end_gain(self, s: Stream) -> str:
        """Return what the end cell gains from a moving x face, unless the whole row gains it."""
        if not s.gain or self.streams.x_face(s) != "moving":
            return ""
        at = self._moving(s)
        return f" + (c0 if {at} else {s.gain})" if at else f" + {s.gain}"

    @abstractmethod
    def end(self, s: Stream) -> str:
        """Return the index that the loop uses for the end cell of a stream."""

    @abstractmethod
    def cut_end(self, s: Stream) -> str:
        """Return the index of the end cell's cut place."""

    @abstractmethod
    def image(self, s: Stream) -> str:
        """Return the index of the periodic image of `end`, or `end` itself in a row whose links are cut."""


@dataclass(frozen=True)
class SelectedRow(Row):
    """Neighbours along x by selecting indices, one cell at a time."""

    def cell(self) -> list[str]:
        """Return the offsets of the cell and its neighbours, and the flags of the x faces."""
        flags = [self.streams.test(face) for face in self.streams.faces_used() if face < 2]
        return [*self.offsets("(x - 1 if x > 0 else nx - 1)", "(x + 1 if x < nx - 1 else 0)"), *flags]

    def load(self, s: Stream) -> str:
        """Return the load from the selected index."""
        return f"load{self.one}({s.buffer}, {self._index(s)}){self._gained(s)}"

    def store(self, s: Stream, value: str) -> list[str]:
        """Return the store to the selected index."""
        return [f"store{self.one}({s.buffer}, {self._index(s)}, {value}{self._gained(s)})"]

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


def unique(lines: Iterable[str]) -> list[str]:
    """Return the lines in order, each once."""
    return list(dict.fromkeys(lines))
