"""Python text of the collision of a cell, of what moving walls add, and of unknown populations at inlets and outlets.

The last follow `catalogue.boundaries.completion`.
"""

from functools import cache

import sympy

from lbmtune.catalogue.boundaries.arguments import EXCESS, INLET
from lbmtune.catalogue.boundaries.completion import arriving, face_steps
from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.min_instruction_forms import by_axes
from lbmtune.catalogue.collisions.operator import (
    Assignment,
    Parameters,
    assignments,
    population,
    relaxed,
    wall_gain,
    weight,
)
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import Condition, Words, conditions, suffix, walls
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.shared.expressions import Constants, Hoisted, assigned, divide_late, hoist, text
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.skeleton import block
from lbmtune.lattice import Lattice

_AT = ("x == 0", "x + {lanes} == nx", "y == 0", "y == ny - 1", "z == 0", "z == nz - 1")
_PARAMETERS = (Parameters.omega, Parameters.omega_minus, Parameters.unit, *Parameters.force)


def relaxation(case: Case, passes: str = "one") -> Hoisted:
    """Return the assignments of the case's collision operator, split into those of a row and those of a cell.

    passes: value of `collision_passes`. With "pipelined" and "minimal" the operator has its form of fewest
    instructions, else that of short dependency chains.
    """
    return _relaxation(case.collision, case.stencil, case.forced, passes in ("pipelined", "minimal"))


@cache
def _relaxation(name: str, lattice: Lattice, forced: bool, few_instructions: bool) -> Hoisted:
    usual = assignments(collision(name), lattice, forced)
    steps = by_axes(collision(name), lattice, forced) if few_instructions else usual
    return hoist(divide_late(usual, lattice) if steps == usual else steps, _PARAMETERS)


def relaxation_text(case: Case, passes: str = "one") -> str:
    """Return the assignments of a cell's collision, one per line."""
    return "\n".join(assigned(relaxation(case, passes).body, Constants()))


def collision_lines(
    case: Case, config: CpuConfig, phase: Phase, constants: Constants, passes: str = "one"
) -> tuple[list[str], list[str]]:
    """Return the lines of the collision before the loop over cells and inside it; a pass that only moves has copies."""
    if not phase.collides:
        return [], [f"{relaxed(a.direction)} = {population(a.direction)}" for a in phase.accesses]
    steps = relaxation(case, passes)
    return invariant_lines(steps, config, constants), assigned(steps.body, constants)


def shift_lines(case: Case, constants: Constants) -> tuple[list[str], list[str]]:
    """Return the lines that take the weights from loaded populations, and those that add them to relaxed ones."""
    weights = [constants.name(weight(case.stencil, i)) for i in range(case.stencil.q)]
    minus = [f"f{i} = f{i} - {w}" for i, w in enumerate(weights)]
    return minus, [f"g{i} = g{i} + {w}" for i, w in enumerate(weights)]


def shift_text(case: Case) -> str:
    """Return the assignments of `shift_lines`, one per line."""
    return "\n".join(line for lines in shift_lines(case, Constants()) for line in lines)


def invariant_lines(steps: Hoisted, config: CpuConfig, constants: Constants) -> list[str]:
    """Return the lines of what is computed once per row; unit: the density one, as stored."""
    return [f"unit = {constants.name(sympy.Integer(int(config.unit)))}", *assigned(steps.invariants, constants)]


def wall_gain_lines(streams: Streams, constants: Constants) -> list[str]:
    """Return definitions of the momentum that each moving wall adds, one set per wall if there are several."""
    case, numbered = streams.case, len(walls(streams.case)) > 1
    lines = []
    for wall in walls(case):
        own = {symbol: sympy.Symbol(f"{symbol}{suffix(wall)}") for symbol in Parameters.wall}
        gains = {f"gain{i}{f'_{wall}' if numbered else ''}": wall_gain(case.stencil, i) for i in streams.gains}
        lines += [f"{name} = {text(gain.xreplace(own), constants)}" for name, gain in gains.items()]
    return lines


def completion_lines(case: Case, lanes: int, constants: Constants, words: Words) -> list[str]:
    """Return the lines between the loads of a vector of cells and their collision. words: fields of a cell's word."""
    return [line for c in conditions(case) for line in _at_face(case, c, lanes, constants, words)]


def needs_lanes(case: Case, lanes: int, *, by_word: bool) -> bool:
    """Return whether single cells are taken out of vectors: at the ends of rows, or by their words (by_word)."""
    return lanes > 1 and any(by_word or (c.face < 2 and c.whole) for c in conditions(case))


def _at_face(case: Case, c: Condition, lanes: int, constants: Constants, words: Words) -> list[str]:
    steps, field = _of_condition(face_steps(case.lattice, c.face, c.kind, case.forced), c), words.field(c)
    single = lanes > 1 and (c.face < 2 or field is not None)
    lane = "k" if field else str(lanes - 1 if c.face % 2 else 0)
    lines = _of_lane(case, c.face, steps, lane, constants) if single else assigned(steps, constants)
    holds = f"word >> {field.shift} & {field.mask} == {field.number}" if field else _AT[c.face].format(lanes=lanes)
    return block(f"if {holds}:", lines)


def _of_condition(steps: tuple[Assignment, ...], condition: Condition) -> tuple[Assignment, ...]:
    """Return the steps with the values of a condition that has its own."""
    if not condition.values:
        return steps
    own = {sympy.Symbol(name): sympy.Symbol(f"{name}{condition.values}") for name in (*INLET, EXCESS)}
    return tuple(Assignment(step.name, step.value.xreplace(own)) for step in steps)


def _of_lane(case: Case, face: int, steps: tuple[Assignment, ...], number: str, constants: Constants) -> list[str]:
    """Return the lines of one cell of a vector; its values are scalars, so they have other names."""
    everywhere = {population(i) for i in range(case.stencil.q)}
    own = {name: sympy.Symbol(f"end_{name}") for name in everywhere | {step.name for step in steps}}
    read = [i for i in range(case.stencil.q) if any(population(i) in step.value.free_symbols for step in steps)]
    renamed = tuple(Assignment(own[step.name], step.value.xreplace(own)) for step in steps)
    return [
        *(f"end_f{i} = lane(f{i}, {number})" for i in read),
        *assigned(renamed, constants),
        *(f"f{i} = with_lane(f{i}, {number}, end_f{i})" for i in arriving(case.stencil, face)),
    ]
