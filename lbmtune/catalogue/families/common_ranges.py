"""Ranges of values that families of both backends share."""

from lbmtune.catalogue.collisions import NO_COLLISION
from lbmtune.catalogue.families.made import Made, Range
from lbmtune.catalogue.knobs import Scalar
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.catalogue.record import KernelConfig


def fixed(reason: str, *values: Scalar) -> Made:
    """Return a range that depends on nothing."""
    return Made(lambda *_: Range(values, reason))


def _flags(case: Case, config: KernelConfig, limits: Limits) -> Range:
    if case.geometry or case.patches:
        return Range(("memory",), "solid cells and patches are known by flags alone")
    return Range(("compiled",), "faces are compiled in: flags would be read for nothing")


FLAGS = Made(_flags)


def _representation(case: Case, config: KernelConfig, limits: Limits) -> Range:
    if case.collision not in ("regularised", NO_COLLISION):
        return Range(("populations",), f"collision {case.collision} depends on more than moments")
    if told(case):
        return Range(("populations",), f"a {told(case)} completes populations, which moments do not hold")
    return Range(("populations", "moments"), "collision and faces allow both")


REPRESENTATION = Made(_representation)


def _order(case: Case, config: KernelConfig, limits: Limits) -> Range:
    if not case.geometry:
        return Range((), "no cell is solid: an index list is read for nothing")
    return Range(("row", "tile", "hilbert"), "rows, tiles and a curve keep neighbours close in different ways")


ORDER = Made(_order)


def _links(case: Case, config: KernelConfig, limits: Limits) -> Range:
    few = ("all", "three_pointers") if config.scheme == "esoteric-twist" else ("all",)
    return Range(few, "three pointers lead to all nodes of Esoteric Twist; the other schemes need all")


LINKS = Made(_links, after=("scheme",))
