"""Cells that load their populations twice: first for the sums over all of them, then one pair of directions at a time.

What only one pair needs is computed when that pair is updated, from populations that are loaded again just before they
are replaced; what pairs share, when the first of them needs it. So few values are live at a time, and they fit into
registers where all populations of a cell would not. If the sums of the next cells are computed before (pipelined),
no update stalls on the division by the density.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sympy import Symbol

from lbmtune.catalogue.collisions.operator import Assignment, population, relaxed
from lbmtune.codegen.cpu.direct.ghost_rows import LinearRow
from lbmtune.codegen.cpu.shared.expressions import Constants, text
from lbmtune.lattice import Lattice

_NEXT = "next_"
_MACROSCOPIC = frozenset(map(Symbol, ("density", "inverse", "jx", "jy", "jz")))
"""Values that always count as sums."""


@dataclass(frozen=True)
class PairUpdate:
    """The update of one pair of directions. steps: assignments that no earlier pair needs."""

    directions: tuple[int, ...]
    steps: tuple[Assignment, ...]


@dataclass(frozen=True)
class PairwiseCell:
    """The lines of a cell that is updated pair by pair.

    steps: its collision; kept: what the updates start from, sums and populations that other pairs need.
    """

    row: LinearRow
    steps: tuple[Assignment, ...]
    kept: tuple[Symbol, ...]
    updates: tuple[PairUpdate, ...]
    constants: Constants

    def two_passes(self) -> list[str]:
        """Return the lines inside the loop over x: the sums, then the updates."""
        return [*self._sums(), *self._updates()]

    def first(self) -> list[str]:
        """Return the lines before a pipelined loop: the sums of the first cells."""
        return self._sums("0", _NEXT)

    def pipelined(self) -> list[str]:
        """Return the lines inside a pipelined loop: the sums of the next cells, then the updates of these."""
        return [*self._arrived(), *self._sums(f"(x + {self.row.lanes})", _NEXT), *self._updates()]

    def last(self) -> list[str]:
        """Return the lines after a pipelined loop: the updates of the last cells."""
        return [*self._arrived(), *self._updates()]

    def _arrived(self) -> list[str]:
        return [f"{name} = {_NEXT}{name}" for name in self.kept]

    def _sums(self, at: str = "x", mark: str = "") -> list[str]:
        """Return the sums of the cells from x = `at` on. mark: prefix of names."""
        loaded = set[Symbol]()
        lines = self._lines(_leading_to(self.kept, self.steps), loaded, at, mark)
        return [*lines, *self._loads(set(self.kept) - loaded, at, mark)]

    def _updates(self) -> list[str]:
        writes = dict(zip(self.row.streams.directions, self.row.streams.writes, strict=True))
        lines, loaded = list[str](), set(self.kept)
        for update in self.updates:
            lines += self._lines(update.steps, loaded)
            lines += [line for i in update.directions for line in self.row.store(writes[i], f"g{i}")]
        return lines

    def _lines(self, steps: Sequence[Assignment], loaded: set[Symbol], at: str = "x", mark: str = "") -> list[str]:
        """Return the assignments, each after the loads that it is the first to need, which are added to `loaded`."""
        names = (*map(population, self.row.streams.directions), *(step.name for step in steps)) if mark else ()
        marked = {name: Symbol(f"{mark}{name}") for name in names}
        lines = list[str]()
        for step in steps:
            lines += self._loads(step.value.free_symbols - loaded, at, mark)
            lines.append(f"{mark}{step.name} = {text(step.value.xreplace(marked), self.constants)}")
            loaded |= step.value.free_symbols
        return lines

    def _loads(self, names: set[Symbol], at: str, mark: str) -> list[str]:
        reads = zip(self.row.streams.directions, self.row.streams.reads, strict=True)
        return [f"{mark}f{i} = {self.row.load(s, at)}" for i, s in sorted(reads) if population(i) in names]


def pairwise_cell(row: LinearRow, steps: tuple[Assignment, ...], constants: Constants) -> PairwiseCell:
    """Return the lines of a row whose cells collide by some assignments."""
    pairs = _pairs(row.streams.case.stencil)
    summed = _summed(steps, pairs)
    done, updates = set(summed), list[PairUpdate]()
    for pair in pairs:
        own = _leading_to(map(relaxed, pair), steps, done)
        done.update(step.name for step in own)
        updates.append(PairUpdate(pair, own))
    populations = tuple(map(population, row.streams.directions))
    begun = set[Symbol]()
    for update in updates:
        # sums, and populations that other pairs replace
        started = summed | {*populations} - {*map(population, update.directions)}
        begun |= started & {name for step in update.steps for name in step.value.free_symbols}
    names = (*populations, *(step.name for step in steps))
    return PairwiseCell(row, steps, tuple(name for name in names if name in begun), tuple(updates), constants)


def _pairs(lattice: Lattice) -> list[tuple[int, ...]]:
    """Return direction 0, then pairs of directions; pairs along the same axes share most and follow each other."""

    def axes(pair: tuple[int, int]) -> tuple[int, ...]:
        along = [axis for axis, c in enumerate(lattice.velocities[pair[0]]) if c]
        return (len(along), *along)

    return [(0,), *sorted(lattice.pairs, key=axes)]


def _summed(steps: Sequence[Assignment], pairs: Sequence[tuple[int, ...]]) -> set[Symbol]:
    """Return the values that depend on populations of several pairs other than through earlier sums."""
    of_pair = {population(i): n for n, pair in enumerate(pairs) for i in pair}
    last = {relaxed(i) for pair in pairs for i in pair}
    read: dict[Symbol, frozenset[int]] = {name: frozenset({n}) for name, n in of_pair.items()}
    summed = set[Symbol]()
    for step in steps:
        pairs_read = frozenset[int]().union(*(read.get(name, ()) for name in step.value.free_symbols))
        if step.name in _MACROSCOPIC or (len(pairs_read) > 1 and step.name not in last):
            summed.add(step.name)
            pairs_read = frozenset()
        read[step.name] = pairs_read
    return summed


def _leading_to(
    names: Iterable[Symbol], steps: Sequence[Assignment], done: Collection[Symbol] = ()
) -> tuple[Assignment, ...]:
    """Return the assignments that values depend on, in order, without those already done."""
    needed, kept = set(names), list[Assignment]()
    for step in reversed(steps):
        if step.name in needed and step.name not in done:
            needed |= step.value.free_symbols
            kept.append(step)
    return tuple(reversed(kept))
