"""Face exchange on CUDA: tiles of moments, updated in place, that leave at their faces what crosses them.

A thread block has a tile. A link between two tiles lies with the one of its ends that is the lower one along the axis
of the face, in a list of that tile: a list for each upper face and each direction that leads through it. It has two
places, one in each of two arrays, of which each belongs to one of its ends in a step and to the other in the next.

Source: Ferrari et al. 2023 (moments of a tile and populations at its faces, with two copies of those).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along, at_least
from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.groups import Bounded, Indexed, Launched
from lbmtune.catalogue.families.small_domains import odd, rounded
from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Int, Layout
from lbmtune.catalogue.layouts.tiled_cells import TiledCells
from lbmtune.catalogue.limits import Limits, extents
from lbmtune.catalogue.moments.representation import POPULATIONS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.storage_frame import StorageFrame, aligned
from lbmtune.lattice import Lattice
from lbmtune.units import format_bytes

_LAYOUTS = ("soa", "aos", "aosoa", "rows", "tiled", "tiled-cells")


@dataclass(frozen=True, kw_only=True)
class FaceExchange(Indexed, Launched, Bounded):
    """One step in place: tiles of moments with the populations that cross their faces."""

    family: ClassVar[str] = "face-exchange"
    title: ClassVar[str] = "tiles that exchange faces"
    layouts: ClassVar[tuple[str, ...]] = _LAYOUTS
    representation = "moments"
    visits_solid_cells: ClassVar[bool] = True
    state_place: ClassVar[str] = "by the faces of tiles"
    tiled: ClassVar[bool] = True
    clipped_knob: ClassVar[str] = "tile"

    layout: Layout = knob(
        TiledCells((8, 8, 8)), "memory layout of a cell's values", search=("tiled-cells",), allowed=_LAYOUTS
    )
    tile: Block = knob(
        (8, 8, 8), "cells of a tile, one per thread, x by y by z", unit="cells", search=("8x8x8", "16x8x8", "32x8x4")
    )
    prefetch_to: str = knob(
        "registers",
        "destination of what comes in through the faces: registers, or shared memory by cp.async",
        search=("registers", "shared"),
        allowed=("registers", "shared"),
    )

    @property
    def block(self) -> Block:
        """Return the threads of a thread block: one per cell of its tile."""
        return self.tile

    @property
    def copies(self) -> int:
        """Return one: the state is updated in place."""
        return 1

    def exchanges(self, lattice: Lattice) -> bool:
        """Return False: there is one copy."""
        return False

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis of a tile."""
        return self.tile

    def frame(self, lattice: Lattice) -> StorageFrame:
        """Return a frame without ghost cells."""
        return aligned(self.memory.tile, self.kept.values(lattice))

    def warp_frame(self, lattice: Lattice, threads: Block) -> StorageFrame:
        """Return the frame of populations that are pulled, which moments of a tile are counted as."""
        x, y, z = self.memory.tile
        return aligned((max(POPULATIONS.row_unit(1), x), y, z), POPULATIONS.values(lattice))

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of no whole tile; layouts of tiles need no whole runs."""
        x, y, z = self.tile
        unit = 1 if self.memory.name.startswith("tiled") else max(self.memory.run, 1)
        return rounded(case, unit, x, odd(y), odd(z))

    def population_bytes(self, case: Case) -> float:
        """Return the bytes per update: moments and what crosses the faces of tiles, read and written once."""
        return 2 * (self.kept.values(case.stencil) + face_values(case, self)) * self.stored.bytes

    def extra_elements(self, lattice: Lattice, domain: Any) -> Any:
        """Return the elements of both arrays of what crosses faces."""
        return 2 * array_elements(lattice, self, domain)

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a block: populations of its tile that move, and what cells at faces read in vain.

        With `prefetch_to=shared` what comes in through the faces is copied there, too.
        """
        lattice = case.stencil
        x, y, z = self.tile
        reach, waiting = (x * y if z > 1 else 0) + x + 1, 2 * crossing(lattice, self) * (self.prefetch_to == "shared")
        return ((lattice.q - 1) * x * y * z + 2 * reach + waiting) * self.computed.bytes


Domain = tuple[Int, Int, Int]


def through(lattice: Lattice, axis: int) -> tuple[int, ...]:
    """Return the directions that lead through the upper face across an axis."""
    return tuple(i for i, c in enumerate(lattice.velocities) if c[axis] > 0)


def list_starts(lattice: Lattice, config: FaceExchange) -> dict[tuple[int, int], int]:
    """Return the first element of each list of a tile, by axis and direction."""
    starts, end = {}, 0
    for axis in range(3):
        for i in through(lattice, axis):
            starts[axis, i] = end
            end += _area(config, axis)
    return starts


def crossing(lattice: Lattice, config: FaceExchange) -> int:
    """Return the number of links of a tile to those after it."""
    return sum(len(through(lattice, axis)) * _area(config, axis) for axis in range(3))


def _area(config: FaceExchange, axis: int) -> int:
    return prod(edge for along, edge in enumerate(config.tile) if along != axis)


def array_elements(lattice: Lattice, config: FaceExchange, domain: Domain) -> Int:
    """Return the elements of either array of what crosses faces; ints or traced values."""
    x, y, z = ((n + (edge - 1)) // edge for n, edge in zip(domain, config.tile, strict=True))
    return x * y * z * crossing(lattice, config)


def face_values(case: Case, config: FaceExchange) -> float:
    """Return the populations of an update that come in through the faces of tiles; as many leave."""
    found = 0.0
    for axis, (n, edge) in enumerate(zip(case.domain, config.tile, strict=True)):
        walled = case.walled_across(axis)
        found += 2 * len(through(case.stencil, axis)) * (-(-n // edge) - walled) / n
    return found


def _copies(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    if config.prefetch_to != "shared":
        return None
    if config.storage != config.compute:
        return (
            f"prefetch_to=shared is not supported for storage={config.storage} with compute={config.compute} "
            "(use registers): a copy does not convert"
        )
    return None


@DomainRule
def _within(case: Case, config: FaceExchange, limits: Limits) -> Iterator[Condition]:
    x, what = config.tile[0], f"tile {extents(config.tile)}"
    said = f"{what} is larger than the domain {extents(case.domain)} along y or z"
    yield from at_least(config.tile, what, said, axes=(1, 2))
    if x > 32:
        said = f"{what} covers {x} cells of a row of {{value}}"
        yield Condition(value=along(0), least=x // 2 + 1, because=what, said=said)


def _on_chip(case: Case, config: FaceExchange, limits: Limits) -> str | None:
    needed, allowed = config.shared_bytes(case), limits.shared_bytes_per_block
    if needed <= allowed:
        return None
    return (
        f"tile {extents(config.tile)} needs {format_bytes(needed)} of shared memory; "
        f"a block here has {format_bytes(allowed)}"
    )


RULES = (
    moment_rules.moments,
    moment_rules.faces,
    moment_rules.patches,
    _on_chip,
    common_rules.flags,
    launch_rules.size,
    _within,
    launch_rules.register_limit,
    launch_rules.whole_groups,
    _copies,
    launch_rules.asynchronous,
    launch_rules.shared,
    launch_rules.index_bits,
    launch_rules.dependent,
    launch_rules.grid,
)
