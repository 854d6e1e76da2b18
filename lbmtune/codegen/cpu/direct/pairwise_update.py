"""Cells that read their populations again: the sums over all of them first, then one pair of directions at a time.

What a pair alone needs is worked out when it is the pair's turn, from populations that are loaded once more just
before they are replaced; what pairs share, when the first of them needs it. So few values are alive at any time, and
registers hold them where they would not hold all populations of a cell. With the sums of the next cells worked out
ahead, nothing waits for the division by the density.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sympy import Symbol

from lbmtune.catalogue.collisions.operator import Assignment, population, relaxed
from lbmtune.codegen.cpu.direct.ghost_rows import LinearRow
from lbmtune.codegen.cpu.shared.expressions import Constants, text
from lbmtune.lattice import Lattice

_NEXT = "next_"
_MACROSCOPIC = frozenset(map(Symbol, ("density", "inverse", "jx", "jy", "jz")))
"""Values that belong to the sums whatever they follow from."""


@dataclass(frozen=True)
class Turn:
    """What one pair of directions does. steps: assignments that nobody before it needed."""

    directions: tuple[int, ...]
    steps: tuple[Assignment, ...]


@dataclass(frozen=True)
class PairwiseCell:
    """The lines of a cell whose pairs take turns.

    steps: its collision; kept: what turns begin with, sums and populations that other pairs than their own need.
    """

    row: LinearRow
    steps: tuple[Assignment, ...]
    kept: tuple[Symbol, ...]
    turns: tuple[Turn, ...]
    constants: Constants

    def two_passes(self) -> list[str]:
        """Lines inside the loop over x: the sums, then the turns."""
        return [*self._sums(), *self._turns()]

    def first(self) -> list[str]:
        """Lines ahead of a loop that works out sums ahead: those of the first cells."""
        return self._sums("0", _NEXT)

    def pipelined(self) -> list[str]:
        """Lines inside it: the sums of the next cells, then the turns of these."""
        return [*self._arrived(), *self._sums(f"(x + {self.row.lanes})", _NEXT), *self._turns()]

    def last(self) -> list[str]:
        """Lines behind it: the turns of the last cells."""
        return [*self._arrived(), *self._turns()]

    def _arrived(self) -> list[str]:
        return [f"{name} = {_NEXT}{name}" for name in self.kept]

    def _sums(self, at: str = "x", mark: str = "") -> list[str]:
        """What turns begin with, for the cells from x = `at` on; mark: what names begin with."""
        loaded = set[Symbol]()
        lines = self._lines(_leading_to(self.kept, self.steps), loaded, at, mark)
        return [*lines, *self._loads(set(self.kept) - loaded, at, mark)]

    def _turns(self) -> list[str]:
        writes = dict(zip(self.row.streams.directions, self.row.streams.writes, strict=True))
        lines, loaded = list[str](), set(self.kept)
        for turn in self.turns:
            lines += self._lines(turn.steps, loaded)
            lines += [line for i in turn.directions for line in self.row.store(writes[i], f"g{i}")]
        return lines

    def _lines(self, steps: Sequence[Assignment], loaded: set[Symbol], at: str = "x", mark: str = "") -> list[str]:
        """The assignments, and ahead of each the loads that it is the first to need; adds those to `loaded`."""
        names = (*map(population, self.row.streams.directions), *(step.name for step in steps)) if mark else ()
        marked = {name: Symbol(f"{mark}{name}") for name in names}
        lines = list[str]()
        for step in steps:
            lines += self._loads(step.value.free_symbols - loaded, at, mark)
            lines.append(f"{mark}{step.name} = {text(step.value.xreplace(marked), self.constants)}")
            loaded |= step.value.free_symbols
        return lines

    def _loads(self, names: set[Symbol], at: str, mark: str) -> list[str]:
        """Those of the populations among names."""
        reads = zip(self.row.streams.directions, self.row.streams.reads, strict=True)
        return [f"{mark}f{i} = {self.row.load(s, at)}" for i, s in sorted(reads) if population(i) in names]


def pairwise_cell(row: LinearRow, steps: tuple[Assignment, ...], constants: Constants) -> PairwiseCell:
    """The lines of a row whose cells collide by these steps."""
    pairs = _pairs(row.streams.case.stencil)
    summed = _summed(steps, pairs)
    done, turns = set(summed), list[Turn]()
    for pair in pairs:
        own = _leading_to(map(relaxed, pair), steps, done)
        done.update(step.name for step in own)
        turns.append(Turn(pair, own))
    begun = {name for turn in turns for name in _read(turn) & (summed | _of_others(turn, row.streams.case.stencil))}
    every = (*map(population, row.streams.directions), *(step.name for step in steps))
    return PairwiseCell(row, steps, tuple(name for name in every if name in begun), tuple(turns), constants)


def _read(turn: Turn) -> set[Symbol]:
    return {name for step in turn.steps for name in step.value.free_symbols}


def _of_others(turn: Turn, lattice: Lattice) -> set[Symbol]:
    """The populations that another pair replaces."""
    return {population(i) for i in range(lattice.q) if i not in turn.directions}


def _pairs(lattice: Lattice) -> list[tuple[int, ...]]:
    """Direction 0, then pairs of directions: those that move along the same axes share most, and follow each other."""

    def axes(pair: tuple[int, int]) -> tuple[int, ...]:
        along = [axis for axis, c in enumerate(lattice.velocities[pair[0]]) if c]
        return (len(along), *along)

    return [(0,), *sorted(lattice.pairs, key=axes)]


def _summed(steps: Sequence[Assignment], pairs: Sequence[tuple[int, ...]]) -> set[Symbol]:
    """Values that follow from populations of several pairs in another way than by sums that are there already."""
    of_pair = {population(i): n for n, pair in enumerate(pairs) for i in pair}
    last = {relaxed(i) for pair in pairs for i in pair}
    read: dict[Symbol, frozenset[int]] = {name: frozenset({n}) for name, n in of_pair.items()}
    summed = set[Symbol]()
    for step in steps:
        found = frozenset[int]().union(*(read.get(name, ()) for name in step.value.free_symbols))
        if step.name in _MACROSCOPIC or (len(found) > 1 and step.name not in last):
            summed.add(step.name)
            found = frozenset()
        read[step.name] = found
    return summed


def _leading_to(
    names: Iterable[Symbol], steps: Sequence[Assignment], done: Collection[Symbol] = ()
) -> tuple[Assignment, ...]:
    """The assignments that values follow from, in their order, but for what is there already."""
    wanted, kept = set(names), list[Assignment]()
    for step in reversed(steps):
        if step.name in wanted and step.name not in done:
            wanted |= step.value.free_symbols
            kept.append(step)
    return tuple(reversed(kept))
