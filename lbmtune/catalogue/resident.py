"""Kernels that keep populations on chip through many steps: their tiles, and what these send one another.

A block keeps a tile of whole rows in shared memory, block x march cells across y and z; all blocks run at once.
A launch does as many steps as it is asked for.
"""

from __future__ import annotations

from lbmtune.catalogue.config import CudaConfig
from lbmtune.lattice import Lattice


def shared_bytes(lattice: Lattice, config: CudaConfig) -> int:
    """Shared memory of a block: the populations of its tile."""
    x, y, _ = config.block
    return lattice.q * x * y * config.march * config.stored.bytes


def face_values(lattice: Lattice, config: CudaConfig) -> float:
    """Populations per cell and step that leave a tile through its faces."""
    y, z = config.block[1], config.march
    inside = sum(max(0, y - abs(c[1])) * max(0, z - abs(c[2])) for c in lattice.velocities)
    return (lattice.q * y * z - inside) / (y * z)
