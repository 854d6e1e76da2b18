"""Swap, fused: a cell collides, reverses, and exchanges with the neighbours before it in lexicographic order."""

from dataclasses import replace

from lbmtune.catalogue.schemes import swap
from lbmtune.catalogue.schemes.scheme import HERE, Phase, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the colliding pass of `swap` with the exchanges that point back in lexicographic order."""
    back = (i for i, c in enumerate(lattice.velocities) if c[::-1] < HERE)
    return replace(swap.phase(lattice, parity), swaps=tuple(row for i in back for row in swap.exchange(lattice, i)))


SCHEME = Scheme(
    "swap-ordered", "one lattice, swap fused and in order", "Mattila et al. 2007", lattices=1, period=1, phase=phase
)
