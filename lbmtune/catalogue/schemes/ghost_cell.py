"""Ghost cells: one lattice in blocks, each with a layer of ghost cells; pull within a block, then a barrier."""

from dataclasses import replace

from lbmtune.catalogue.schemes import pull
from lbmtune.catalogue.schemes.scheme import Phase, Scheme
from lbmtune.lattice import Lattice


def phase(lattice: Lattice, parity: int) -> Phase:
    """Return the pass of pull in place; neighbours in another block are read from the block's own ghost cells."""
    return replace(pull.phase(lattice, parity), target=0, blockwise=True)


SCHEME = Scheme(
    "ghost-cell", "one lattice in blocks with ghost cells", "Valero-Lara 2017", lattices=1, period=1, phase=phase
)
