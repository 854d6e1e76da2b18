"""Python text that reconstructs the unknown populations at inlets and outlets (`catalogue.boundaries.completion`)."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Symbol

from lbmtune.catalogue.boundaries.arguments import EXCESS, INLET
from lbmtune.catalogue.boundaries.completion import arriving, face_steps
from lbmtune.catalogue.collisions.operator import Assignment, population
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import Condition, Field, Words, conditions
from lbmtune.codegen.cpu.shared.expressions import Constants, text

_AT = ("x == 0", "x + {lanes} == nx", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")


def completion_lines(case: Case, lanes: int, constants: Constants, words: Words) -> list[str]:
    """Return the lines between the loads of a vector of cells and their collision. words: fields of a cell's word."""
    return [line for c in conditions(case) for line in _at_face(case, c, lanes, constants, words)]


def needs_lanes(case: Case, lanes: int, *, by_word: bool) -> bool:
    """Return whether single cells are taken out of vectors: at the ends of rows, or by their words (by_word)."""
    return lanes > 1 and any(by_word or (c.face < 2 and c.whole) for c in conditions(case))


def _at_face(case: Case, c: Condition, lanes: int, constants: Constants, words: Words) -> Iterator[str]:
    steps, field = _of_condition(face_steps(case.lattice, c.face, c.kind, case.forced), c), words.field(c)
    single = lanes > 1 and (c.face < 2 or field is not None)
    yield f"if {_holds(field) if field else _AT[c.face].format(lanes=lanes)}:"
    lane = "k" if field else str(lanes - 1 if c.face % 2 else 0)
    lines = _of_lane(case, c.face, steps, lane, constants) if single else _lines(steps, constants)
    yield from (f"    {line}" for line in lines)


def _holds(field: Field) -> str:
    """Return the test of a cell's word for a condition."""
    return f"word >> {field.shift} & {field.mask} == {field.number}"


def _of_condition(steps: tuple[Assignment, ...], condition: Condition) -> tuple[Assignment, ...]:
    """Return the steps with the values of a condition that has its own."""
    if not condition.values:
        return steps
    own = {Symbol(name): Symbol(f"{name}{condition.values}") for name in (*INLET, EXCESS)}
    return tuple(Assignment(step.name, step.value.xreplace(own)) for step in steps)


def _lines(steps: tuple[Assignment, ...], constants: Constants) -> list[str]:
    return [f"{step.name} = {text(step.value, constants)}" for step in steps]


def _of_lane(case: Case, face: int, steps: tuple[Assignment, ...], number: str, constants: Constants) -> list[str]:
    """Return the lines of one cell of a vector; its values are scalars, so they have other names."""
    everywhere = {population(i) for i in range(case.stencil.q)}
    own = {name: Symbol(f"end_{name}") for name in everywhere | {step.name for step in steps}}
    read = [i for i in range(case.stencil.q) if any(population(i) in step.value.free_symbols for step in steps)]
    renamed = tuple(Assignment(own[step.name], step.value.xreplace(own)) for step in steps)
    return [
        *(f"end_f{i} = lane(f{i}, {number})" for i in read),
        *_lines(renamed, constants),
        *(f"f{i} = with_lane(f{i}, {number}, end_f{i})" for i in arriving(case.stencil, face)),
    ]
