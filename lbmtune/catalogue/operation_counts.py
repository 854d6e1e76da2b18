"""Floating-point operations of a cell update, counted on the assignments of its collision operator.

An addition, subtraction, multiplication or division is one operation, a fused multiply-add two. Expressions of numbers
and launch arguments only are computed beforehand: they cost nothing, and each is one operand. Half of the force is
counted as part of the collision; bounce-back and moving walls are not counted.
"""

from collections.abc import Iterable
from functools import lru_cache

from sympy import Expr, Symbol

from lbmtune.catalogue.collisions import collision
from lbmtune.catalogue.collisions.operator import Assignment, Parameters, assignments
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import lattice

_ARGUMENTS = (Parameters.omega, Parameters.omega_minus, Parameters.unit, *Parameters.force)


def flops_per_update(case: Case) -> int:
    """Return the operations of one cell of the case, with its force, without its walls."""
    return operator_flops(case.collision, case.lattice, case.forced)


@lru_cache(maxsize=64)
def operator_flops(name: str, lattice_name: str, forced: bool = False) -> int:
    """Return the operations of a collision operator on a lattice."""
    return flops(assignments(collision(name), lattice(lattice_name), forced))


def flops(steps: Iterable[Assignment]) -> int:
    """Return the operations of some assignments."""
    beforehand, count = set(_ARGUMENTS), 0
    for step in steps:
        if step.value.free_symbols <= beforehand:
            beforehand.add(step.name)
        else:
            count += _operations(step.value, beforehand)
    return count


def _operations(value: Expr, beforehand: set[Symbol]) -> int:
    """Return the operations of one expression: operands are joined pairwise, precomputed ones taken as one."""
    if value.is_Pow:
        return _operations(value.base, beforehand) + (1 if value.exp == -1 else int(value.exp) - 1)
    known = [part for part in value.args if part.free_symbols <= beforehand]
    others = [part for part in value.args if not part.free_symbols <= beforehand]
    # a sign is part of the addition or of the operand that follows
    one_more = bool(known) and known != [-1]
    return max(0, len(others) + one_more - 1) + sum(_operations(part, beforehand) for part in others)
