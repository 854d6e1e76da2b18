"""The collision operators: one file each, found by name. A file is imported if it is asked for: it needs SymPy."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from lbmtune.errors import unknown

if TYPE_CHECKING:
    from lbmtune.catalogue.collisions.operator import Collision

COLLISIONS = ("bgk", "trt", "regularised", "mrt", "cumulant")
"""Names of the files of this folder that have a collision operator."""
NO_COLLISION = "none"
"""Streaming alone: not to be chosen in a study, but what a kernel is held against that collides
(`measure.profiling.loss_breakdown`)."""


@cache
def collision(name: str) -> Collision:
    """Return the operator of that name, or none at all. Raises InputError for an unknown one."""
    if name not in (*COLLISIONS, NO_COLLISION):
        raise unknown("collision", name, COLLISIONS)
    found: Collision = import_module(f"{__name__}.{name}").COLLISION
    return found
