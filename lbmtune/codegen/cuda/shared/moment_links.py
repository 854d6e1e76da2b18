"""What cut links reflect to a cell in kernels with stages, as C text."""

from __future__ import annotations

from lbmtune.catalogue.boundaries.cell_flags import moving_links
from lbmtune.catalogue.collisions.operator import wall_gain, weight
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.shared.expressions import text
from lbmtune.codegen.cuda.shared.physics import SCALARS
from lbmtune.codegen.moment_stages import Sums

SENDING = ("const Real (&still)[LINES]", "const Real (&right)[MOVERS]", "const Real (&left)[MOVERS]")
"""Parameters that hold what a cell sends."""


def sent(cell: str = "v") -> tuple[str, ...]:
    """Return what a cell of a thread sends. cell: its number."""
    return f"still[{cell}]", f"right[{cell}]", f"left[{cell}]"


def scalars(case: Case) -> tuple[str, ...]:
    """Return the launch arguments of moving walls."""
    used = {str(symbol) for i in moving_links(case) for symbol in wall_gain(case.stencil, i).free_symbols}
    return tuple(name for name in SCALARS if name in used)


def sent_back(sums: Sums, i: int) -> str:
    """Return p(-c_i) of a cell."""
    x, y, z = sums.lattice.velocities[i]
    row = (-y, -z)
    return f"still[{sums.rows.index(row)}]" if not x else f"{'left' if x > 0 else 'right'}[{sums.movers.index(row)}]"


def gained(case: Case, i: int) -> str:
    """Return what a moving wall adds to p(-c_i)."""
    return text(wall_gain(case.stencil, i) / weight(case.stencil, i))
