"""Collision and wall terms as C text, printed from their SymPy form."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sympy import Expr, Symbol

from lbmtune.catalogue.boundaries.arguments import EXCESS, INLET
from lbmtune.catalogue.boundaries.completion import FACE_NAMES, arriving, face_steps
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.operator import (
    Assignment,
    Parameters,
    assignments,
    population,
    relaxed,
    wall_gain,
    weight,
)
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import Condition, Words, conditions, layout, suffix, walls
from lbmtune.catalogue.problem.faces import Face
from lbmtune.codegen.cuda.shared.expressions import function, reals, text
from lbmtune.lattice import Vector, lattice

SCALARS = (
    "omega", "omega_minus", "force_x", "force_y", "force_z", "wall_x", "wall_y", "wall_z",
    "inlet_x", "inlet_y", "inlet_z", "excess",
)  # fmt: skip
"""Launch arguments of the compute precision, in the order in which every entry takes them."""


def used_scalars(values: Iterable[Expr]) -> tuple[str, ...]:
    """Return the launch arguments that some expressions use."""
    used = {str(symbol) for value in values for symbol in value.free_symbols}
    return tuple(scalar for scalar in SCALARS if scalar in used)


def updating(
    head: str, value: str, names: Sequence[tuple[Symbol, Symbol]], steps: Iterable[Assignment], scalars: Iterable[str]
) -> str:
    """Return the device function that replaces the values of a cell.

    head: name and first parameters; value: format of a value, by number; names: of each value before and after steps.
    """
    lines = [f"const Real {before} = {value.format(k)};" for k, (before, _) in enumerate(names)]
    lines += [f"const Real {step.name} = {text(step.value)};" for step in steps]
    lines += [f"{value.format(k)} = {after};" for k, (_, after) in enumerate(names)]
    return function(f"{', '.join((head, *reals(scalars)))})", lines)


@lru_cache(maxsize=64)
def collide_function(name: str, lattice_name: str, forced: bool) -> str:
    """Return the device function that relaxes cell v of a thread."""
    stencil = lattice(lattice_name)
    head, steps = "collide(Real (&f)[Q][CELLS], const int v", assignments(collision(name), stencil, forced)
    names = [(population(i), relaxed(i)) for i in range(stencil.q)]
    return updating(head, "f[{}][v]", names, steps, collision_scalars(name, lattice_name, forced))


@lru_cache(maxsize=64)
def collision_scalars(name: str, lattice_name: str, forced: bool) -> tuple[str, ...]:
    """Return the launch arguments of the collision."""
    return used_scalars(step.value for step in assignments(collision(name), lattice(lattice_name), forced))


@lru_cache(maxsize=64)
def shift_functions(lattice_name: str) -> str:
    """Return the device functions that take the weights from populations that are stored as they are, and add them."""
    weights = [text(weight(lattice(lattice_name), i)) for i in range(lattice(lattice_name).q)]
    changes = (("shift", "-"), ("unshift", "+"))
    return "\n\n".join(
        function(
            f"{name}(Real (&f)[Q][CELLS], const int v)",
            [f"f[{i}][v] = f[{i}][v] {sign} {w};" for i, w in enumerate(weights)],
        )
        for name, sign in changes
    )


_OWN = (*INLET, EXCESS)
"""Arguments that each condition has for itself."""
_AT_FACE = (
    "x == 0 && v == 0", "x + CELLS == nx && v == CELLS - 1", "y == 0", "y + 1 == ny", "z == 0", "z + 1 == nz",
)  # fmt: skip


def functions(case: Case) -> str:
    """Return the device functions of a case: the collision, and the completion of cells at faces before it."""
    faces = dict.fromkeys((_name(c), c.face, c.kind) for c in conditions(case))
    cell, value = "Real (&f)[Q][CELLS], const int v", "f[{}][v]"
    texts = (face_function(name, cell, value, case.lattice, face, kind, case.forced) for name, face, kind in faces)
    return "\n\n".join([collide_function(case.collision, case.lattice, case.forced), *texts])


def cell_scalars(case: Case) -> set[str]:
    """Return the launch arguments of collision and faces."""
    used = {*collision_scalars(case.collision, case.lattice, case.forced)}
    return used | {name for c in conditions(case) for name in _arguments(case, c)}


def complete(case: Case, words: Words, types: str = "") -> list[str]:
    """Return the calls that complete what arrives at cell v of a thread at faces that are no walls.

    words: which of the conditions are stored in a word of each cell; types: the array of those words.
    """
    return [
        f"        if ({_met(c, words, types)}) {_name(c)}({', '.join(['f', 'v', *_arguments(case, c)])});"
        for c in conditions(case)
    ]


def _met(condition: Condition, words: Words, types: str) -> str:
    field = words.field(condition)
    if field is None:
        return _AT_FACE[condition.face]
    return f"({types}[v] >> {field.shift} & {field.mask}u) == {field.number}u"


def _name(condition: Condition) -> str:
    """Return the name of the device function of a condition; a face with patches may have one for each kind."""
    return f"at_{FACE_NAMES[condition.face]}{'' if condition.whole else f'_{condition.kind}'}"


def _arguments(case: Case, condition: Condition) -> tuple[str, ...]:
    """Return the arguments of a call besides the cell: values of the condition, and the force."""
    takes = face_scalars(case.lattice, condition.face, condition.kind, case.forced)
    return tuple(f"{name}{condition.values}" if name in _OWN else name for name in takes)


@lru_cache(maxsize=64)
def face_scalars(lattice_name: str, face: int, kind: Face, forced: bool) -> tuple[str, ...]:
    """Return the launch arguments of a face."""
    return used_scalars(step.value for step in face_steps(lattice_name, face, kind, forced))


def face_function(name: str, cell: str, value: str, lattice_name: str, face: int, kind: Face, forced: bool) -> str:
    """Return a device function that completes a cell at a face. cell: its parameter; value: a population, by number."""
    stencil, steps = lattice(lattice_name), face_steps(lattice_name, face, kind, forced)
    known = {symbol for step in steps for symbol in step.value.free_symbols}
    over = {population(i): value.format(i) for i in arriving(stencil, face)}
    read = ((population(i), value.format(i)) for i in range(stencil.q) if population(i) in known)
    lines = [f"const Real {symbol} = {at};" for symbol, at in read]
    lines += [f"{over.get(step.name, f'const Real {step.name}')} = {text(step.value)};" for step in steps]
    return function(f"{name}({', '.join((cell, *reals(face_scalars(lattice_name, face, kind, forced))))})", lines)


def wall_scalars(case: Case, velocities: Iterable[Vector]) -> set[str]:
    """Return the launch arguments of moving walls that reflect populations along some velocities."""
    names = [f"wall_{name}" for name, along in zip("xyz", zip(*velocities, strict=True), strict=False) if any(along)]
    return {f"{name}{suffix(wall)}" for name in names for wall in walls(case)}


def of_wall(case: Case, wall: int, words: str, types: str, *, everywhere: bool) -> str:
    """Return the words of links at one of several moving walls, zeros elsewhere. types: words that name the wall."""
    field = dict(layout(case, everywhere=everywhere).walls).get(wall)
    return f"of_wall({words}, {types}, {field.shift}, {field.mask}u, {field.number}u)" if field else words


@lru_cache(maxsize=256)
def gain(lattice_name: str, i: int, wall: int = 0) -> str:
    """Return what a moving wall adds to a population that it reflects along c_i. wall: number of its patch."""
    own = {symbol: Symbol(f"{symbol}{suffix(wall)}") for symbol in Parameters.wall}
    return text(wall_gain(lattice(lattice_name), i).xreplace(own))
