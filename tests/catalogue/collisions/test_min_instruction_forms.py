"""Lean forms of collision operators against the usual ones, exactly."""

from __future__ import annotations

import random

import pytest
import sympy
from sympy import Rational, Symbol

from lbmtune.catalogue.collisions import COLLISIONS, collision
from lbmtune.catalogue.collisions.min_instruction_forms import by_axes, leanest
from lbmtune.catalogue.collisions.operator import Assignment, assignments, population, relaxed
from lbmtune.codegen.cpu.shared.expressions import Constants, divide_late, hoist, text
from lbmtune.codegen.cuda.shared.physics import collide_function
from lbmtune.codegen.cuda.temporal_blocking.populations import relaxation
from lbmtune.lattice import LATTICES, Lattice
from lbmtune.model.instructions import arithmetic


def _relaxed(steps: tuple[Assignment, ...], lattice: Lattice) -> list[sympy.Expr]:
    draw = random.Random(3)
    given = {population(i): Rational(draw.randint(-50, 50), 1000) for i in range(lattice.q)}
    given |= {
        Symbol("omega"): Rational(13, 10),
        Symbol("omega_minus"): Rational(9, 10),
        Symbol("unit"): sympy.Integer(1),
    }
    for axis, name in enumerate("xyz"):
        given[Symbol(f"force_{name}")] = Rational(draw.randint(1, 9) * (axis < lattice.dimensions), 1000)
    for step in steps:
        given[step.name] = step.value.xreplace(given)
    return [given[relaxed(i)] for i in range(lattice.q)]


@pytest.mark.parametrize("lattice", LATTICES.values(), ids=lambda found: found.name)
@pytest.mark.parametrize("forced", [False, True])
@pytest.mark.parametrize("name", ["bgk", "trt"])
def test_it_is_the_same_in_rational_numbers(lattice: Lattice, forced: bool, name: str) -> None:
    lean, usual = (form(collision(name), lattice, forced) for form in (leanest, assignments))
    fewest = by_axes(collision(name), lattice, forced)
    assert lean != usual
    assert (fewest != lean) == (name == "bgk" and not forced)
    assert _relaxed(lean, lattice) == _relaxed(fewest, lattice) == _relaxed(usual, lattice)


@pytest.mark.parametrize(("name", "usual", "fewest"), [("d2q9", 53, 50), ("d3q19", 111, 100), ("d3q27", 164, 147)])
def test_instructions_of_processors(name: str, usual: int, fewest: int) -> None:
    """Of a cell as printed for CPUs; compiled, D3Q19 has 111 and 100."""
    stencil = LATTICES[name]
    operator = assignments(collision("bgk"), stencil, False)
    assert _counted(divide_late(operator, stencil)) == usual
    assert _counted(by_axes(collision("bgk"), stencil, False)) == fewest


def _counted(steps: tuple[Assignment, ...]) -> int:
    """Additions, subtractions, divisions, and products that do not go into a sum."""
    constants, parameters = Constants(), [Symbol("omega"), Symbol("unit")]
    found = hoist(steps, parameters)
    known = {*map(str, parameters), *(str(a.name) for a in found.invariants)}
    lines = [f"    const Real {a.name} = {text(a.value, constants)};" for a in found.body]
    return arithmetic("\n".join(lines).replace("c1 / ", "Real(1) / "), {*known, *constants.values})


@pytest.mark.parametrize("name", sorted(set(COLLISIONS) - {"bgk", "trt", "cumulant"}))
def test_others_are_as_they_are(name: str) -> None:
    stencil = LATTICES["d3q19"]
    assert leanest(collision(name), stencil, False) == assignments(collision(name), stencil, False)


@pytest.mark.parametrize(
    ("name", "operator", "lean", "usual"),
    [
        ("d2q9", "bgk", 52, 60),
        ("d3q19", "bgk", 106, 129),
        ("d3q27", "bgk", 152, 190),
        ("d3q19", "trt", 121, 147),
    ],
)
def test_instructions(name: str, operator: str, lean: int, usual: int) -> None:
    """Of a cell, as counted on the text; compiled for compute capability 9.0, BGK with D3Q19 has 105 and 128."""
    given = ("unit", "omega", "omega_minus")
    assert arithmetic(relaxation(operator, name, False), given) == lean
    assert arithmetic(collide_function(operator, name, False), given) == usual
