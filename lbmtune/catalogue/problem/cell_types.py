"""Which conditions the cells of a case may have, and how a word says which ones a cell has.

A condition is what a cell at a face does with what arrives over it. Where it holds for a whole face, a kernel knows
it by the coordinates of its cells; else a cell's word says so, as it does for all of them where cells have no
coordinates. For each axis the word has a field with the number of the cell's condition across it, 0 for none; where
walls move with several velocities, a bit for each of them says which one the cell lies at. In words that have bits of
links, all of it lies above those.

Source: de Oliveira, Lugarini, Franco 2019 keep a word per node likewise: which condition, its normal, which values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from lbmtune.catalogue.problem.faces import LOCAL, OPEN, SIDES, Face
from lbmtune.catalogue.problem.fields import Problem

WORD_BITS = 32


class Condition(NamedTuple):
    """A kind of boundary at a face. patch: number from 1 of the patch whose cells have it; 0: cells of no patch.

    whole: whether those are all cells of the face.
    """

    face: int
    kind: Face
    patch: int
    whole: bool

    @property
    def values(self) -> str:
        """What the names of its values end with."""
        return suffix(self.patch)


class Field(NamedTuple):
    """Bits of a word: where they start, how many there are, and the number that stands in them."""

    shift: int
    bits: int
    number: int

    @property
    def mask(self) -> int:
        """Of the bits, once they are shifted down."""
        return (1 << self.bits) - 1


def suffix(patch: int) -> str:
    """What the names of a patch's values end with; '' for those of the case itself, which have number 0."""
    return f"_{patch}" if patch else ""


def patched(case: Problem, face: int) -> bool:
    """Whether parts of a face have kinds of their own."""
    return any(patch.side == face for patch in case.patches)


@lru_cache(maxsize=256)
def conditions(case: Problem) -> tuple[Condition, ...]:
    """What cells complete before they collide, in the order of doing so: slip comes first where faces meet."""
    found = [Condition(face, kind, 0, not patched(case, face)) for face, kind in enumerate(case.faces)]
    found += [Condition(p.side, p.kind, n, False) for n, p in enumerate(case.patches, 1) if p.side is not None]
    order = [kind for kind in LOCAL if any(c.kind == kind for c in found)]
    return tuple(c for kind in order for c in sorted(found) if c.kind == kind)


@lru_cache(maxsize=256)
def walls(case: Problem) -> tuple[int, ...]:
    """Numbers of the patches that are moving walls; 0 for moving faces. Each has its velocity."""
    own = (0,) if "moving" in case.faces else ()
    return (*own, *(n for n, patch in enumerate(case.patches, 1) if patch.kind == "moving"))


@dataclass(frozen=True)
class Words:
    """Fields of the word of a cell, so many bits together.

    conditions: those that stand in it; walls: of several, each by the number of its patch.
    """

    conditions: tuple[tuple[Condition, Field], ...]
    walls: tuple[tuple[int, Field], ...]
    bits: int

    def __bool__(self) -> bool:
        return bool(self.conditions or self.walls)

    def field(self, condition: Condition) -> Field | None:
        """Where a condition stands; None where coordinates say so."""
        return dict(self.conditions).get(condition)


@lru_cache(maxsize=256)
def layout(case: Problem, *, everywhere: bool) -> Words:
    """The fields of a case. everywhere: conditions of whole faces, too, in words that have no bits of links."""
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
    """What is asked of a configuration here."""

    @property
    def indirect(self) -> bool:
        """Whether sites are listed."""


def words_of(case: Problem, config: Addressed) -> Words:
    """Return the fields of words that a kernel reads."""
    return layout(case, everywhere=config.indirect)


def told(case: Problem) -> str:
    """The first condition in words, as reasons name it; '' where there is none."""
    for c in conditions(case):
        return f"{c.kind} {'patch' if c.patch else 'face'} {SIDES[c.face]}"
    return ""


def opens(condition: Condition) -> bool:
    """Whether a velocity or a density is given."""
    return condition.kind in OPEN
