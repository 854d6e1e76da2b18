"""Cells that read their populations again: the sums over all of them first, then one pair of directions at a time.

What a pair alone needs is worked out when it is the pair's turn, from populations that are loaded once more just
before they are replaced. So few values are alive at any time, and registers hold them where they would not hold all
populations of a cell. With the sums of the next cells worked out ahead, nothing waits for the division by the density.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sympy import Symbol

from lbmtune.catalogue.collision import Assignment, population, relaxed
from lbmtune.codegen.cpu.expressions import Constants, text
from lbmtune.codegen.cpu.rows import LinearRow
from lbmtune.lattice import Lattice

_NEXT = "next_"


@dataclass(frozen=True)
class Turn:
    """What one pair of directions does. steps: its own assignments; taken: values and populations of the whole cell."""

    directions: tuple[int, ...]
    steps: tuple[Assignment, ...]
    taken: frozenset[Symbol]


@dataclass(frozen=True)
class InTurns:
    """The lines of a cell whose pairs take turns. steps: its collision; turns: first the rest, then pair after pair."""

    row: LinearRow
    steps: tuple[Assignment, ...]
    turns: tuple[Turn, ...]
    constants: Constants

    def twice(self) -> list[str]:
        """Lines inside the loop over x: the sums, then the turns."""
        return [*self._sums(), *self._turns()]

    def first(self) -> list[str]:
        """Lines ahead of a loop that works out sums ahead: those of the first cells."""
        return self._sums("0", _NEXT)

    def ahead(self) -> list[str]:
        """Lines inside it: the sums of the next cells, then the turns of these."""
        return [*self._arrived(), *self._sums(f"(x + {self.row.lanes})", _NEXT), *self._turns()]

    def last(self) -> list[str]:
        """Lines behind it: the turns of the last cells."""
        return [*self._arrived(), *self._turns()]

    def _taken(self) -> list[Symbol]:
        taken = frozenset[Symbol]().union(*(turn.taken for turn in self.turns))
        return [name for name in (*_populations(self.row.streams.directions), *_names(self.steps)) if name in taken]

    def _arrived(self) -> list[str]:
        return [f"{name} = {_NEXT}{name}" for name in self._taken()]

    def _sums(self, at: str = "x", mark: str = "") -> list[str]:
        """The values that turns take, for the cells from x = `at` on; mark: what names of values begin with."""
        taken, lines, loaded = self._taken(), list[str](), set[Symbol]()
        steps = _leading_to(taken, self.steps)
        named = (*_populations(self.row.streams.directions), *_names(steps))
        marked = {name: Symbol(f"{mark}{name}") for name in named}
        for step in steps:
            lines += self._loads(step.value.free_symbols - loaded, at, mark)
            lines.append(f"{mark}{step.name} = {text(step.value.xreplace(marked), self.constants)}")
            loaded |= step.value.free_symbols
        return [*lines, *self._loads(set(taken) - loaded, at, mark)]

    def _turns(self) -> list[str]:
        return [line for turn in self.turns for line in self._turn(turn)]

    def _turn(self, turn: Turn) -> list[str]:
        read = {name for step in turn.steps for name in step.value.free_symbols}
        steps = [f"{step.name} = {text(step.value, self.constants)}" for step in turn.steps]
        writes = dict(zip(self.row.streams.directions, self.row.streams.writes, strict=True))
        stores = [line for i in turn.directions for line in self.row.store(writes[i], f"g{i}")]
        return [*self._loads(read - turn.taken), *steps, *stores]

    def _loads(self, names: set[Symbol], at: str = "x", mark: str = "") -> list[str]:
        """Those of the populations among names."""
        reads = zip(self.row.streams.directions, self.row.streams.reads, strict=True)
        return [f"{mark}f{i} = {self.row.load(s, at)}" for i, s in sorted(reads) if population(i) in names]


def in_turns(row: LinearRow, steps: tuple[Assignment, ...], constants: Constants) -> InTurns:
    """The lines of a row whose cells collide by these steps."""
    lattice = row.streams.case.stencil
    pairs = ((0,), *lattice.pairs)
    needed = [set(_names(_leading_to(map(relaxed, pair), steps))) for pair in pairs]
    shared = {name for name in _names(steps) if sum(name in some for some in needed) > 1}
    return InTurns(row, steps, tuple(_turn(pair, steps, lattice, shared) for pair in pairs), constants)


def _turn(
    pair: tuple[int, ...],
    steps: Sequence[Assignment],
    lattice: Lattice,
    shared: set[Symbol],
) -> Turn:
    """A pair takes what others need, too, unless it follows from the pair's populations alone."""
    wanted, own, taken = set(map(relaxed, pair)), list[Assignment](), set[Symbol]()
    read = _read(steps, lattice)
    for step in reversed(steps):
        if step.name in wanted and step.name in shared and not read[step.name] <= set(pair):
            taken.add(step.name)
        elif step.name in wanted:
            own.append(step)
            wanted |= step.value.free_symbols
    others = wanted & {population(i) for i in range(lattice.q) if i not in pair}
    return Turn(pair, tuple(reversed(own)), frozenset(taken | others))


def _read(steps: Sequence[Assignment], lattice: Lattice) -> dict[Symbol, frozenset[int]]:
    """Directions of the populations that each value follows from."""
    found = {population(i): frozenset({i}) for i in range(lattice.q)}
    for step in steps:
        found[step.name] = frozenset().union(*(found.get(name, ()) for name in step.value.free_symbols))
    return found


def _leading_to(names: Iterable[Symbol], steps: Sequence[Assignment]) -> tuple[Assignment, ...]:
    """The assignments that values follow from, in their order."""
    wanted, kept = set(names), list[Assignment]()
    for step in reversed(steps):
        if step.name in wanted:
            wanted |= step.value.free_symbols
            kept.append(step)
    return tuple(reversed(kept))


def _names(steps: Iterable[Assignment]) -> list[Symbol]:
    return [step.name for step in steps]


def _populations(directions: Iterable[int]) -> list[Symbol]:
    return [population(i) for i in sorted(directions)]
