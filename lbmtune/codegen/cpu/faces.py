"""Lines of a CPU kernel that complete what arrived over faces that are no walls (`catalogue.boundaries`)."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Symbol

from lbmtune.catalogue.boundaries import arriving, face_steps
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collision import Assignment, population
from lbmtune.codegen.cpu.expressions import Constants, text

_AT = ("x == 0", "x + {lanes} == nx", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")


def complete(case: Case, lanes: int, constants: Constants) -> list[str]:
    """Lines between the loads of a cell, or of so many, and their collision."""
    return [line for face, kind in case.local_faces for line in _at_face(case, face, kind, lanes, constants)]


def needs_lanes(case: Case, lanes: int) -> bool:
    """Whether cells at an end of a row are taken out of a vector."""
    return lanes > 1 and any(face < 2 for face, _ in case.local_faces)


def _at_face(case: Case, face: int, kind: str, lanes: int, constants: Constants) -> Iterator[str]:
    steps = face_steps(case.lattice, face, kind, case.forced)
    single = lanes > 1 and face < 2
    yield f"if {_AT[face].format(lanes=lanes)}:"
    yield from (
        f"    {line}"
        for line in (_of_lane(case, face, steps, lanes, constants) if single else _lines(steps, constants))
    )


def _lines(steps: tuple[Assignment, ...], constants: Constants) -> list[str]:
    return [f"{step.name} = {text(step.value, constants)}" for step in steps]


def _of_lane(case: Case, face: int, steps: tuple[Assignment, ...], lanes: int, constants: Constants) -> list[str]:
    """The same for the first or the last cell of a vector. Its values have names of their own: they are no vectors."""
    number = lanes - 1 if face % 2 else 0
    everywhere = {population(i) for i in range(case.stencil.q)}
    own = {name: Symbol(f"end_{name}") for name in everywhere | {step.name for step in steps}}
    read = [i for i in range(case.stencil.q) if any(population(i) in step.value.free_symbols for step in steps)]
    renamed = tuple(Assignment(own[step.name], step.value.xreplace(own)) for step in steps)
    return [
        *(f"end_f{i} = lane(f{i}, {number})" for i in read),
        *_lines(renamed, constants),
        *(f"f{i} = with_lane(f{i}, {number}, end_f{i})" for i in arriving(case.stencil, face)),
    ]
