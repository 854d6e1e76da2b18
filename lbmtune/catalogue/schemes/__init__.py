"""The propagation schemes by name, one file each."""

from collections.abc import Mapping

from lbmtune.catalogue.schemes import (
    aa,
    esoteric_pull,
    esoteric_twist,
    ghost_cell,
    pull,
    push,
    swap,
    swap_ordered,
    two_step,
)
from lbmtune.catalogue.schemes.scheme import Scheme
from lbmtune.errors import named

SCHEMES: Mapping[str, Scheme] = {
    module.SCHEME.name: module.SCHEME
    for module in (pull, push, aa, esoteric_twist, esoteric_pull, two_step, swap, swap_ordered, ghost_cell)
}


def scheme(name: str) -> Scheme:
    """Return the scheme of that name. Raises InputError for an unknown one."""
    return named("scheme", name, SCHEMES)
