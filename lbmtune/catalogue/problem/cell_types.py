"""Conditions of cells at faces, and their encoding in a word per cell.

A condition completes the populations that arrive over a face. If it holds for a whole face, a kernel applies it by the
coordinates of the cells; otherwise, and if cells have no coordinates, by the cell's word. For each axis the word has a
field with the number of the cell's condition across it, 0 for none. If walls move with several velocities, one bit per
velocity says which one applies to the cell. If words have bits of links, these fields are above them.

Source: de Oliveira, Lugarini, Franco 2019 use a similar word per node: condition, normal and values.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from lbmtune.catalogue.problem.faces import LOCAL, SIDES, Face, Problem

WORD_BITS = 32


class Condition(NamedTuple):
    """A kind of boundary at a face. patch: number from 1 of the patch whose cells have it; 0: cells of no patch.

    whole: whether all cells of the face have it.
    """

    face: int
    kind: Face
    patch: int
    whole: bool

    @property
    def values(self) -> str:
        """Return the suffix of the names of its values."""
        return suffix(self.patch)


class Field(NamedTuple):
    """A bit field of a word: position, width and value."""

    shift: int
    bits: int
    number: int

    @property
    def mask(self) -> int:
        """Return the mask of the bits after the shift."""
        return (1 << self.bits) - 1


def suffix(patch: int) -> str:
    """Return the suffix of the names of a patch's values; '' for those of the case itself, number 0."""
    return f"_{patch}" if patch else ""


def patched(case: Problem, face: int) -> bool:
    """Return whether a face has patches."""
    return any(patch.side == face for patch in case.patches)


@lru_cache(maxsize=256)
def conditions(case: Problem) -> tuple[Condition, ...]:
    """Return the conditions of a case in the order in which cells apply them: slip first."""
    found = [Condition(face, kind, 0, not patched(case, face)) for face, kind in enumerate(case.faces)]
    found += [Condition(p.side, p.kind, n, False) for n, p in enumerate(case.patches, 1) if p.side is not None]
    order = [kind for kind in LOCAL if any(c.kind == kind for c in found)]
    return tuple(c for kind in order for c in sorted(found) if c.kind == kind)


@lru_cache(maxsize=256)
def walls(case: Problem) -> tuple[int, ...]:
    """Return the numbers of the patches that are moving walls, after 0 if a face moves. Each has its own velocity."""
    own = (0,) if "moving" in case.faces else ()
    return (*own, *(n for n, patch in enumerate(case.patches, 1) if patch.kind == "moving"))


@dataclass(frozen=True)
class Words:
    """The fields of a cell's word. bits: of all fields together.

    conditions: those in the word; walls: if there are several, each by the number of its patch.
    """

    conditions: tuple[tuple[Condition, Field], ...]
    walls: tuple[tuple[int, Field], ...]
    bits: int

    def __bool__(self) -> bool:
        return bool(self.conditions or self.walls)

    def field(self, condition: Condition) -> Field | None:
        """Return the field of a condition, or None if coordinates determine it."""
        return dict(self.conditions).get(condition)


@lru_cache(maxsize=256)
def layout(case: Problem, *, everywhere: bool) -> Words:
    """Return the fields of a case.

    everywhere: include conditions of whole faces, in words that have no bits of links.
    """
    first, placed = 0 if everywhere else case.stencil.q, list[tuple[Condition, Field]]()
    shift = first
    for axis in range(3):
        across = [c for c in conditions(case) if c.face // 2 == axis and (everywhere or not c.whole)]
        bits = len(across).bit_length()
        placed += [(c, Field(shift, bits, number)) for number, c in enumerate(across, 1)]
        shift += bits
    several = walls(case) if len(walls(case)) > 1 else ()
    moving = tuple((patch, Field(shift + number, 1, 1)) for number, patch in enumerate(several))
    return Words(tuple(placed), moving, shift + len(several) - first)


class Addressed(Protocol):
    """The addressing of a configuration."""

    @property
    def indirect(self) -> bool:
        """Return whether fluid sites are listed."""


def words_of(case: Problem, config: Addressed) -> Words:
    """Return the fields of the words that a kernel reads."""
    return layout(case, everywhere=config.indirect)


def told(case: Problem) -> str:
    """Return the first condition in words for a reason, '' if there is none."""
    for c in conditions(case):
        return f"{c.kind} {'patch' if c.patch else 'face'} {SIDES[c.face]}"
    return ""
