"""What returns to cells over cut links within a kernel of moments, and what it costs on chip."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.links import may_cut
from lbmtune.catalogue.moments import orders
from lbmtune.lattice import negate


def cuts(case: Case) -> bool:
    """Whether any link can be cut."""
    return case.walled or bool(case.geometry)


def returning(case: Case) -> tuple[int, ...]:
    """Directions i by which something may return: the link from the cell along -c_i may be cut."""
    return tuple(i for i, c in enumerate(case.stencil.velocities) if any(c) and may_cut(case, negate(c)))


def splits(case: Case) -> bool:
    """Whether something may return from above.

    Moments with c_z and with c_z^2 wait in one sum otherwise: what comes from below has c_z = 1.
    """
    return any(case.stencil.velocities[i][2] < 0 for i in returning(case))


def waiting_sums(case: Case) -> int:
    """Sums of a cell that wait for the plane above it."""
    return len(orders(case.stencil)) - (not splits(case))
