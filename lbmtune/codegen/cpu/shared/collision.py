"""Python text of the collision of a cell, and of what moving walls add to its populations."""

from __future__ import annotations

from functools import cache

import sympy

from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.min_instruction_forms import by_axes
from lbmtune.catalogue.collisions.operator import Parameters, assignments, population, relaxed, wall_gain
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import suffix, walls
from lbmtune.catalogue.schemes.scheme import Phase
from lbmtune.codegen.cpu.shared.expressions import Constants, Hoisted, divide_late, hoist, text
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.lattice import Lattice

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
    constants = Constants()
    return "\n".join(f"{a.name} = {text(a.value, constants)}" for a in relaxation(case, passes).body)


def collision_lines(
    case: Case, config: CpuConfig, phase: Phase, constants: Constants, passes: str = "one"
) -> tuple[list[str], list[str]]:
    """Return the lines of the collision before the loop over cells and inside it; a pass that only moves has copies."""
    if not phase.collides:
        return [], [f"{relaxed(a.direction)} = {population(a.direction)}" for a in phase.accesses]
    steps = relaxation(case, passes)
    unit = f"unit = {constants.name(sympy.Integer(int(config.stored.scale)))}"
    invariants = [unit, *(f"{a.name} = {text(a.value, constants)}" for a in steps.invariants)]
    return invariants, [f"{a.name} = {text(a.value, constants)}" for a in steps.body]


def wall_gain_lines(streams: Streams, constants: Constants) -> list[str]:
    """Return definitions of the momentum that each moving wall adds, one set per wall if there are several."""
    case, numbered = streams.case, len(walls(streams.case)) > 1
    return [
        f"gain{i}{f'_{wall}' if numbered else ''} = {text(_of_wall(wall_gain(case.stencil, i), wall), constants)}"
        for wall in walls(case)
        for i in streams.gains
    ]


def _of_wall(gain: sympy.Expr, wall: int) -> sympy.Expr:
    return gain.xreplace({symbol: sympy.Symbol(f"{symbol}{suffix(wall)}") for symbol in Parameters.wall})
