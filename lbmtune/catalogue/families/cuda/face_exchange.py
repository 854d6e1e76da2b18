"""Tiles of moments that leave at their faces what crosses them (`halo=faces`): links between tiles, and what they take.

A block has a tile. A link between two tiles lies with the one of its ends that is the lower one along the axis of the
face, in a list of that tile: a list for each upper face and each direction that leads through it. It has two places,
one in each of two arrays, of which each belongs to one of its ends in a step and to the other one in the next.

Source: Ferrari et al. 2023 (moments of a tile and populations at its faces, with two copies of those).
"""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.layouts.layout import Int
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

Domain = tuple[Int, Int, Int]


def through(lattice: Lattice, axis: int) -> tuple[int, ...]:
    """Directions that lead through an upper face."""
    return tuple(i for i, c in enumerate(lattice.velocities) if c[axis] > 0)


def list_starts(lattice: Lattice, config: CudaConfig) -> dict[tuple[int, int], int]:
    """Of each list of a tile, by axis and direction: its first element."""
    starts, end = {}, 0
    for axis in range(3):
        for i in through(lattice, axis):
            starts[axis, i] = end
            end += _area(config, axis)
    return starts


def crossing(lattice: Lattice, config: CudaConfig) -> int:
    """Links of a tile to those after it."""
    return sum(len(through(lattice, axis)) * _area(config, axis) for axis in range(3))


def _area(config: CudaConfig, axis: int) -> int:
    return prod(edge for along, edge in enumerate(config.block) if along != axis)


def array_elements(lattice: Lattice, config: CudaConfig, domain: Domain) -> Int:
    """Of either of the two arrays; ints or traced values."""
    x, y, z = ((n + (edge - 1)) // edge for n, edge in zip(domain, config.block, strict=True))
    return x * y * z * crossing(lattice, config)


def face_values(case: Case, config: CudaConfig) -> float:
    """Populations of an update that come in through the faces of tiles; as many leave."""
    found = 0.0
    for axis, (n, edge) in enumerate(zip(case.domain, config.block, strict=True)):
        walled = case.faces[2 * axis] != "periodic"
        found += 2 * len(through(case.stencil, axis)) * (-(-n // edge) - walled) / n
    return found


def tile_bytes(lattice: Lattice, config: CudaConfig) -> int:
    """Shared memory of a block: the populations of its tile that move, and what cells at faces read in vain.

    With `fetch=shared` what comes in through the faces waits there, too.
    """
    x, y, z = config.block
    reach, waiting = (x * y if z > 1 else 0) + x + 1, 2 * crossing(lattice, config) * config.copies_ahead
    return ((lattice.q - 1) * x * y * z + 2 * reach + waiting) * config.computed.bytes
