"""Swap, fused and ordered: a cell collides, reverses, and swaps with the neighbours that have done so before it."""

from __future__ import annotations

from dataclasses import replace

from lbmtune.catalogue.schemes import swap
from lbmtune.catalogue.schemes.scheme import HERE, Phase, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """The pass of `swap` that collides, and of the one that swaps what leads back in the order of cells."""
    back = (i for i, c in enumerate(lattice.velocities) if c[::-1] < HERE)
    return replace(swap.phase(lattice, parity), swaps=tuple(row for i in back for row in swap.exchange(lattice, i)))


SCHEME = Scheme(
    "swap-ordered", "one lattice, swap fused and in order", "Mattila et al. 2007", lattices=1, period=1, phase=phase
)
