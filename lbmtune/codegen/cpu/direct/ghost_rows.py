"""Rows with ghost columns: the places of cells in linear and grouped layouts."""

from dataclasses import dataclass

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.schemes.scheme import Place
from lbmtune.codegen.cpu.direct.rows import SHIFTED, GhostRow, unique
from lbmtune.codegen.cpu.shared.streams import Stream, Streams, rows_of, stays


@dataclass(frozen=True)
class LinearRow(GhostRow):
    """A row whose cell x lies at p + x * step; the shift of a place along x is part of its p."""

    @property
    def step(self) -> int:
        """Return the elements between neighbouring cells."""
        along = self.streams.config.memory.along_x
        return int(along(1, self.streams.extents) - along(0, self.streams.extents))

    def load(self, s: Stream, at: str = "x") -> str:
        """Return the load of consecutive cells from x = `at` on."""
        return f"load({self.element(s, at)}){self.gained(s)}"

    def ahead(self, s: Stream, cells: int) -> str:
        """Return array and index of what a later cell reads."""
        return self.element(s, f"(x + {cells})")

    def store(self, s: Stream, value: str) -> list[str]:
        """Return the store of consecutive cells."""
        leave = self.leave if stays(s) else "store"
        return [f"{leave}({self.element(s, 'x')}, {value}{self.gained(s)})"]

    def element(self, s: Stream, at: str) -> str:
        """Return array and index of a cell's population."""
        return f"{s.buffer}, p{s.name} + {self._times(at)}"

    def end(self, s: Stream) -> str:
        """Return the first or the last cell."""
        return f"p{s.name} + {self._times('(nx - 1)')}" if self.is_high(s) else f"p{s.name}"

    def cut_end(self, s: Stream) -> str:
        """Return the first or the last cell, from q."""
        return "q" + self.end(s)[1:]

    def image(self, s: Stream) -> str:
        """Return the index one period away."""
        at, period = self.streams.at_wall(s), self._times("nx")
        return f"{self.end(s)} {'-' if self.is_high(s) else '+'} {f'(0 if {at} else {period})' if at else period}"

    def _base(self, s: Stream) -> list[str]:
        at = self.streams.at_wall(s) if s.cut != s.open else ""
        opened = self._start(s, cut=False)
        cut = [f"q{s.name} = {self._start(s, cut=True)}"] if self.has_cut_end(s) else []
        closed = f"q{s.name}" if cut else self._start(s, cut=True)
        return [*cut, f"p{s.name} = {f'{closed} if {at} else {opened}' if at else opened}"]

    def _start(self, s: Stream, *, cut: bool) -> str:
        place = s.cut if cut else s.open
        return " + ".join([self.streams.base(place), *self._shift(place)])

    def _shift(self, place: Place) -> list[str]:
        start = (self.streams.frame.origin[0] + place.offset[0]) * self.step
        return [str(start)] if start else []

    def _times(self, count: str) -> str:
        return f"{count} * {self.step}" if self.step > 1 else count


@dataclass(frozen=True)
class PlacedRow(LinearRow):
    """A linear row that holds the address of cell x in each row that it reads; slot and shift become displacements.

    Processors with 512-bit vectors split a fused load and conversion, or store, if its address has an index register.
    """

    def cell(self) -> list[str]:
        """Return the definitions of the addresses."""
        placed = [(s.buffer, *rows_of(s.open)) for s in self.streams.all if not self._has_two_rows(s)]
        return unique(f"{buffer}{y}{z} = place({buffer}, y{y} + z{z} + x)" for buffer, y, z in placed)

    def element(self, s: Stream, at: str) -> str:
        """Return base and displacement; array and index before the loop, and if y and z select one of two rows."""
        first, *further = at.strip("()").split(" + ")
        if first != "x" or self._has_two_rows(s):
            return super().element(s, at)
        beyond = " + ".join([*self.streams.slot(s.open), *self._shift(s.open), *further])
        return f"{s.buffer}{''.join(rows_of(s.open))}, {beyond or '0'}"

    def _has_two_rows(self, s: Stream) -> bool:
        return s.cut != s.open and bool(self.streams.at_wall(s))


@dataclass(frozen=True)
class GroupedRow(GhostRow):
    """A row whose cell x lies at p + along_x(x), which jumps between groups; a vector lies within one group."""

    def cell(self) -> list[str]:
        """Return the offsets of the cells at x and of those next to them."""
        return self.offsets("(x - 1)", f"(x + {self.lanes})")

    def load(self, s: Stream) -> str:
        """Return the load; shifted lanes come from two groups."""
        opened, closed = (
            f"load{self._suffix(dx)}({s.buffer}, {self._indices(s, dx)})" for dx in (s.open.offset[0], s.cut.offset[0])
        )
        at = self.streams.at_wall(s)
        return (f"({closed} if {at} else {opened})" if at and closed != opened else opened) + self.gained(s)

    def store(self, s: Stream, value: str) -> list[str]:
        """Return the store; shifted lanes go to two groups."""
        opened, closed = (
            f"store{self._suffix(dx)}({s.buffer}, {self._indices(s, dx)}, {value}{self.gained(s)})"
            for dx in (s.open.offset[0], s.cut.offset[0])
        )
        at = self.streams.at_wall(s)
        return [f"if {at}:", f"    {closed}", "else:", f"    {opened}"] if at and closed != opened else [opened]

    def end(self, s: Stream) -> str:
        """Return the first or the last cell, at the place that the row uses."""
        opened, closed = (f"({self._end_x(s, place.offset[0])})" for place in (s.open, s.cut))
        at = self.streams.at_wall(s)
        return f"p{s.name} + " + (f"({closed} if {at} else {opened})" if at and closed != opened else opened)

    def cut_end(self, s: Stream) -> str:
        """Return the first or the last cell, at the cut place."""
        return f"q{s.name} + {self._end_x(s, s.cut.offset[0])}"

    def image(self, s: Stream) -> str:
        """Return the cell at the other end of the row."""
        at = self.streams.at_wall(s)
        inside = self.streams.along_x("0" if self.is_high(s) else "(nx - 1)")
        end = f"({self._end_x(s, s.cut.offset[0])})"
        return f"p{s.name} + " + (f"({end} if {at} else ({inside}))" if at else f"({inside})")

    def _end_x(self, s: Stream, shift: int) -> str:
        cell = ("nx", "(nx - 1)", "(nx - 2)")[1 - shift] if self.is_high(s) else ("(0 - 1)", "0", "1")[1 + shift]
        return self.streams.along_x(cell)

    def _base(self, s: Stream) -> list[str]:
        at = self.streams.at_wall(s) if s.cut != s.open else ""
        opened, closed = self.streams.base(s.open), self.streams.base(s.cut)
        cut = [f"q{s.name} = {closed}"] if self.has_cut_end(s) else []
        return [*cut, f"p{s.name} = {f'{closed} if {at} else {opened}' if at and closed != opened else opened}"]

    def _indices(self, s: Stream, shift: int) -> str:
        if self.lanes == 1 or not shift:
            return f"p{s.name} + {SHIFTED[shift]}"
        return f"p{s.name} + here, p{s.name} + {SHIFTED[shift]}"

    def _suffix(self, shift: int) -> str:
        return "" if self.lanes == 1 else ("_before", "", "_after")[1 + shift]


def converts(config: CpuConfig) -> bool:
    """Return whether populations are converted between memory and registers."""
    return config.stored.dtype != config.computed.dtype


def has_places(config: CpuConfig) -> bool:
    """Return whether cells hold addresses: a fixed stride needs few, and conversions profit from them."""
    addressed = getattr(config.memory, "stride", 0) and config.collision_passes != "one"
    return bool(addressed) and config.vector_bits == 512 and converts(config)


def ghost_row(streams: Streams, store: str = "store") -> GhostRow:
    """Return the kind of row of a configuration with ghost columns. store: name of the store function."""
    config = streams.config
    kind = GroupedRow if config.memory.run > 1 else PlacedRow if has_places(config) else LinearRow
    return kind(streams, config.lanes, store)
