"""Which links bring back to a cell what it sent, within a kernel of moments."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.links import may_cut
from lbmtune.lattice import negate


def cuts(case: Case) -> bool:
    """Whether any link can be cut."""
    return case.walled or bool(case.geometry)


def returning(case: Case) -> tuple[int, ...]:
    """Directions i by which something may return: the link from the cell along -c_i may be cut."""
    return tuple(i for i, c in enumerate(case.stencil.velocities) if any(c) and may_cut(case, negate(c)))
