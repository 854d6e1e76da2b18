"""The collision operators: one file each, found by name."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.collisions import bgk, cumulant, mrt, none, regularised, trt
from lbmtune.catalogue.collisions.operator import Collision
from lbmtune.errors import unknown

OPERATORS: Mapping[str, Collision] = {
    module.COLLISION.name: module.COLLISION for module in (bgk, trt, regularised, mrt, cumulant)
}


def collision(name: str) -> Collision:
    """The operator of that name, or none at all. Raises InputError for an unknown one."""
    if name == none.COLLISION.name:
        return none.COLLISION
    try:
        return OPERATORS[name]
    except KeyError:
        raise unknown("collision", name, OPERATORS) from None
