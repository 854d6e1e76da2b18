"""Kernels that keep their state on chip through many steps: their tiles, and what these send one another.

A block keeps a tile of whole rows, of populations block x march cells across y and z in shared memory; of moments as
many rows as its threads have, in shared memory but for `held` planes. All blocks run at once. A launch does as many
steps as it is asked for.
"""

from __future__ import annotations

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import handed_on, rising_sums
from lbmtune.catalogue.layouts.layout import Int
from lbmtune.lattice import Lattice

_TOGETHER = (2, 3, 1)
"""Planes that one pass may take, the first that divides those of a tile."""


def shared_bytes(lattice: Lattice, config: CudaConfig) -> int:
    """Shared memory of a block: the state of its tile, and with moments what its threads hand on."""
    x, y, _ = config.block
    if not config.of_moments:
        return lattice.q * x * y * config.march * config.stored.bytes
    return _plane_bytes(lattice, config) * (config.march - config.held) + _exchange_bytes(lattice, config)


def _plane_bytes(lattice: Lattice, config: CudaConfig) -> int:
    x, y, _ = config.block
    return config.kept.values(lattice) * x * y * config.cells_per_thread * config.rows * config.stored.bytes


def _exchange_bytes(lattice: Lattice, config: CudaConfig) -> int:
    """Sums that threads hand on along y in two planes; in one if those of others lie where moments did."""
    if lattice.dimensions == 2:
        return 0
    x, y, _ = config.block
    values = 2 * handed_on(lattice)
    once = values * x * y * config.cells_per_thread * config.computed.bytes
    in_place = values == config.kept.values(lattice) and config.stored.bytes == config.computed.bytes
    return once * config.rows * (config.held > 0) if in_place else 2 * once


def planes_together(config: CudaConfig) -> int:
    """Planes that one pass over a tile of moments takes; registers keep the first of each, where they keep any."""
    if config.held:
        return config.march // config.held
    return next(n for n in _TOGETHER if config.march % n == 0)


def planes_less(lattice: Lattice, config: CudaConfig) -> int:
    """Planes that the highest tiles may have less than the others: of moments one is left, of those held a pass."""
    if not config.of_moments or lattice.dimensions == 2:
        return 0
    return config.march - (planes_together(config) if config.held else 1)


def face_values(lattice: Lattice, config: CudaConfig) -> float:
    """Values per cell and step that leave a tile through its faces: populations, or sums of them."""
    if config.of_moments:
        return _face_sums(lattice, config)
    y, z = config.block[1], config.march
    inside = sum(max(0, y - abs(c[1])) * max(0, z - abs(c[2])) for c in lattice.velocities)
    return (lattice.q * y * z - inside) / (y * z)


def _face_sums(lattice: Lattice, config: CudaConfig) -> float:
    sideways = 0 if lattice.dimensions == 2 else 2 * handed_on(lattice) / (config.block[1] * config.rows)
    return sideways + 2 * rising_sums(lattice) / config.march


def face_elements(lattice: Lattice, config: CudaConfig, domain: tuple[Int, Int, Int]) -> Int:
    """Length of the buffer of such sums, of two steps in turn; ints or traced values."""
    nx, ny, nz = domain
    sideways, upwards, rows, planes = _sums_of_tiles(lattice, config)
    if lattice.dimensions == 2:
        return 4 * nx * ((ny + (planes - 1)) // planes * upwards)
    along_y, along_z = (ny + (rows - 1)) // rows * nz, (nz + (planes - 1)) // planes * ny
    return 4 * nx * (along_y * sideways + along_z * upwards)


def _sums_of_tiles(lattice: Lattice, config: CudaConfig) -> tuple[int, int, int, int]:
    """Sums of a cell that go one way along y, and along z; rows and planes of a tile."""
    return handed_on(lattice), rising_sums(lattice), config.block[1] * config.rows, config.march
