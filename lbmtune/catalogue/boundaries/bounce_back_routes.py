"""Links by which populations may return to their cell (bounce-back) in a kernel of moments."""

from lbmtune.catalogue.boundaries.cut_links import may_cut
from lbmtune.catalogue.moments.basis import upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import negate

WAITING = 3
"""Values per cell that a kernel of moments buffers in three dimensions for the exchange at walls
(`codegen.cuda.temporal_blocking.wall_moments`)."""


def cuts(case: Case) -> bool:
    """Return whether any link can be cut."""
    return case.walled or bool(case.geometry)


def returning(case: Case) -> tuple[int, ...]:
    """Return the directions i by which populations may return: the link from the cell along -c_i may be cut."""
    return tuple(i for i, c in enumerate(case.stencil.velocities) if any(c) and may_cut(case, negate(c)))


def returned_sums(case: Case) -> tuple[tuple[int, int, int], ...]:
    """Return the moments of the returning populations in two dimensions: (c_x, power of c_y, power of c_z).

    Velocities are those of the upright lattice.
    """
    velocities, found = upright(case.stencil).velocities, list[tuple[int, int, int]]()
    for c_x in (1, -1, 0):
        sides = [velocities[i][1:] for i in returning(case) if velocities[i][0] == c_x]
        powers = ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2), (1, 1))
        found += [(c_x, y, z) for y, z in powers if any((a or not y) and (b or not z) for a, b in sides)]
    return tuple(found)
