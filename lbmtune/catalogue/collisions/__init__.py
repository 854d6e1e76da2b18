"""The collision operators by name, one file each. A file needs SymPy, so it is imported at its first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from lbmtune.errors import unknown

if TYPE_CHECKING:
    from lbmtune.catalogue.collisions.operator import Collision

NO_COLLISION = "none"
"""Streaming only, the reference of `measure.profiling.loss_breakdown` for the cost of collision; no study has it."""
_PARTS = ("central_moments", "min_instruction_forms", "operator", "pairwise", NO_COLLISION)
"""Files of this folder that are no operators."""
_FIRST = ("bgk", "trt", "regularised", "mrt", "cumulant")
"""Operators that lists begin with, in order."""
COLLISIONS = (*_FIRST, *(one.name for one in iter_modules(__path__) if one.name not in {*_FIRST, *_PARTS}))
"""Names of the collision operators, which are those of their files."""


@cache
def collision(name: str) -> Collision:
    """Return the operator of that name; 'none' streams only. Raises InputError for an unknown one."""
    if name not in (*COLLISIONS, NO_COLLISION):
        raise unknown("collision", name, COLLISIONS)
    found: Collision = import_module(f"{__name__}.{name}").COLLISION
    return found
