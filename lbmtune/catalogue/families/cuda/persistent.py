"""Persistent on CUDA: the state stays on chip through all steps of a launch; thread blocks exchange tile faces.

A thread block keeps a tile of whole rows, of populations block x tile_planes cells across y and z in shared memory; of
moments as many rows as its threads have, in shared memory but for `register_planes` planes. All blocks run at once
(cooperative launch). A launch does as many steps as are asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.domain_conditions import Condition, DomainRule, along, blocks
from lbmtune.catalogue.families import common_rules, moment_rules
from lbmtune.catalogue.families.cuda import launch_rules
from lbmtune.catalogue.families.cuda.temporal_blocking import MAX_ROWS
from lbmtune.catalogue.families.groups import Bounded, Indexed, Represented, ThreadBlocks
from lbmtune.catalogue.families.small_domains import is_flat
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.layouts.layout import Int
from lbmtune.catalogue.limits import RESERVED_BYTES, WARP, Limits, extents, registers_allowed
from lbmtune.catalogue.moments.basis import handed_on, rising_sums
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import told
from lbmtune.lattice import Lattice
from lbmtune.units import format_bytes

_MOMENTS = Acts(on="representation", values=("moments",), because="a thread has one column of its tile of populations")
_WHOLE_ROWS = "tiles are whole rows"
_MOST_HELD = 8
"""Planes that a thread keeps in registers, each of which has a text of its own."""


@dataclass(frozen=True, kw_only=True)
class Persistent(Indexed, ThreadBlocks, Bounded, Represented):
    """All steps of a launch on chip."""

    family: ClassVar[str] = "persistent"
    title: ClassVar[str] = "state on chip"
    layouts: ClassVar[tuple[str, ...]] = ("soa", "aos", "aosoa", "rows", "tiled", "tiled-cells")
    state_place: ClassVar[str] = "on chip"
    on_chip: ClassVar[bool] = True
    tiled: ClassVar[bool] = True
    length_knob: ClassVar[str] = "tile_planes"
    launch = "resident"

    block: Block = knob(
        (32, 4, 1), "threads per block: rows of a tile along x and y", unit="threads", search=("32x4x1", "32x8x1")
    )
    tile_planes: int = knob(4, "planes along z of a tile", unit="planes", search=(2, 4, 8), least=1)
    cells_per_thread: int = knob(
        1, "consecutive cells along x of a thread", unit="cells", allowed=tuple(range(1, 9)), acts=(_MOMENTS,)
    )
    rows: int = knob(
        1, "rows along y of a thread", unit="rows", allowed=tuple(range(1, MAX_ROWS + 1)), acts=(_MOMENTS,)
    )
    register_planes: int = knob(0, "planes of a tile whose moments stay in registers", unit="planes", acts=(_MOMENTS,))
    min_blocks: int = knob(
        0, "least resident thread blocks per multiprocessor, by launch bounds; 0: one", unit="blocks"
    )
    grid_sync: str = knob("all", "thread blocks that one synchronises with in each step", allowed=("all", "neighbours"))

    @property
    def max_registers(self) -> int:
        """Return zero: launch bounds make all blocks fit, and there is no other cap."""
        return 0

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis of a tile; in two dimensions threads of moments go up along y."""
        x, y, z = self.block
        if self.of_moments and lattice.dimensions == 2:
            return x * self.cells_per_thread, y * self.tile_planes, z
        return x * self.cells_per_thread, y * self.rows, z * self.tile_planes

    def row_cells(self, least: int) -> int:
        """Return the cells of a row: tiles are whole rows."""
        return self.block[0] * self.cells_per_thread

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of three by five tiles that all differ; the highest have as few planes as they may."""
        x, y, z = self.block_cells(case.stencil)
        flat = is_flat(case)
        nx, ny, nz = x, 3 * y, z if flat else 5 * z - planes_less(case.stencil, self)
        ny += y * (ny == nx)
        while not flat and nz in (nx, ny):
            nz += z
        return nx, ny, nz

    def population_bytes(self, case: Case) -> float:
        """Return the bytes per update that leave a tile through its faces and come in."""
        return 2 * face_values(case.stencil, self) * self.stored.bytes

    def scratch_bytes(self, case: Case) -> int:
        """Return the bytes of the sums of moments that tiles exchange."""
        if not self.of_moments:
            return 0
        return int(face_elements(case.stencil, self, case.domain)) * self.computed.bytes

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a block: the state of its tile, and with moments what its threads hand on."""
        lattice = case.stencil
        x, y, _ = self.block
        if not self.of_moments:
            return lattice.q * x * y * self.tile_planes * self.stored.bytes
        return _plane_bytes(lattice, self) * (self.tile_planes - self.register_planes) + _exchange_bytes(lattice, self)


_TOGETHER = (2, 3, 1)
"""Planes that one pass may take, the first that divides those of a tile."""


def _plane_bytes(lattice: Lattice, config: Persistent) -> int:
    x, y, _ = config.block
    return config.kept.values(lattice) * x * y * config.cells_per_thread * config.rows * config.stored.bytes


def _exchange_bytes(lattice: Lattice, config: Persistent) -> int:
    """Sums that threads hand on along y in two planes; in one if those of others lie where moments did."""
    if lattice.dimensions == 2:
        return 0
    x, y, _ = config.block
    values = 2 * handed_on(lattice)
    once = values * x * y * config.cells_per_thread * config.computed.bytes
    in_place = values == config.kept.values(lattice) and config.stored.bytes == config.computed.bytes
    return once * config.rows * (config.register_planes > 0) if in_place else 2 * once


def planes_together(config: Persistent) -> int:
    """Return the planes that one pass over a tile of moments takes; registers keep the first of each, if any."""
    if config.register_planes:
        return config.tile_planes // config.register_planes
    return next(n for n in _TOGETHER if config.tile_planes % n == 0)


def planes_less(lattice: Lattice, config: Persistent) -> int:
    """Return the planes that the highest tiles may lack: of moments one is left, of planes that are held a pass."""
    if not config.of_moments or lattice.dimensions == 2:
        return 0
    return config.tile_planes - (planes_together(config) if config.register_planes else 1)


def face_values(lattice: Lattice, config: Persistent) -> float:
    """Return the values per cell and step that leave a tile through its faces: populations, or sums of them."""
    if config.of_moments:
        sideways = 0 if lattice.dimensions == 2 else 2 * handed_on(lattice) / (config.block[1] * config.rows)
        return sideways + 2 * rising_sums(lattice) / config.tile_planes
    y, z = config.block[1], config.tile_planes
    inside = sum(max(0, y - abs(c[1])) * max(0, z - abs(c[2])) for c in lattice.velocities)
    return (lattice.q * y * z - inside) / (y * z)


def face_elements(lattice: Lattice, config: Persistent, domain: tuple[Int, Int, Int]) -> Int:
    """Return the length of the buffer of such sums, of two steps in turn; ints or traced values."""
    nx, ny, nz = domain
    sideways, upwards = handed_on(lattice), rising_sums(lattice)
    rows, planes = config.block[1] * config.rows, config.tile_planes
    if lattice.dimensions == 2:
        return 4 * nx * ((ny + (planes - 1)) // planes * upwards)
    along_y, along_z = (ny + (rows - 1)) // rows * nz, (nz + (planes - 1)) // planes * ny
    return 4 * nx * (along_y * sideways + along_z * upwards)


def blocks_at_once(case: Case, config: Persistent, limits: Limits) -> int:
    """Return the blocks that a multiprocessor is sure to hold: by threads, shared memory and launch bounds."""
    threads = config.block[0] * config.block[1]
    by_memory = limits.shared_bytes_per_multiprocessor // (config.shared_bytes(case) + RESERVED_BYTES)
    return min(max(1, config.min_blocks), limits.threads_per_multiprocessor // threads, by_memory)


def _faces(case: Case, config: Persistent, limits: Limits) -> str | None:
    if where := told(case):
        return f"{where} is not supported for family persistent (use direct): its kernels complete no populations"
    return moment_rules.patches(case, config, limits)


def _moments(case: Case, config: Persistent, limits: Limits) -> str | None:
    if not config.of_moments:
        return None
    name = config.memory.name
    if name not in ("soa", "rows"):
        return f"layout={name} is not supported for representation=moments (use soa or rows)"
    if case.stencil.dimensions == 2 and config.rows > 1:
        return f"rows={config.rows} is not supported for lattice={case.lattice} (use 1): threads go up along y"
    held, planes = config.register_planes, config.tile_planes
    if held and (planes % held or planes < 2 * held):
        return (
            f"register_planes={held} is not supported for tile_planes={planes}: registers keep one plane of each two, "
            "three or more, by which the planes of a tile are divisible"
        )
    return None


@DomainRule
def _tile(case: Case, config: Persistent, limits: Limits) -> Iterator[str | Condition]:
    if config.of_moments:
        yield from _tile_of_moments(case, config)
        return
    x, y, z = config.block
    said = f"block {extents(config.block)} is not supported (use {case.domain[0]} x n x 1): tiles are whole rows"
    yield Condition(value=along(0), least=x, most=x, because=_WHOLE_ROWS, said=said)
    if z != 1:
        yield said
    tile = extents((x, y, config.tile_planes))
    said = f"the domain {extents(case.domain)} is not divisible into tiles of {tile}"
    for axis, cells in ((1, y), (2, config.tile_planes)):
        yield Condition(value=along(axis), multiple=cells, because=f"tiles of {tile}", said=said)


def _tile_of_moments(case: Case, config: Persistent) -> Iterator[str | Condition]:
    """Rows are rings of lanes within a warp. Only the last layer of tiles may have fewer planes than the others."""
    (x, y, z), domain = config.block, extents(case.domain)
    block = f"block {extents(config.block)}"
    if z != 1 or WARP % x or x * y % WARP:
        reason = "1, 2, 4, 8, 16 or 32 threads have a row, whole warps the rows"
        yield f"{block} is not supported for moments (use for example 32x4x1): {reason}"
    row, rows, _ = config.block_cells(case.stencil)
    what = f"{block} x {config.cells_per_thread} cells"
    said = f"{what} is not supported for moments (use {{value}} cells along x): {_WHOLE_ROWS}"
    yield Condition(value=along(0), least=row, most=row, because=_WHOLE_ROWS, said=said)
    said = f"{{value}} rows of the domain {domain} are not divisible into tiles of {rows}"
    yield Condition(value=along(1), multiple=rows, because=f"tiles of {rows} rows", said=said)
    together = planes_together(config)
    if case.stencil.dimensions == 3 and config.register_planes:
        what, passes = f"register_planes={config.register_planes}", f"the {together} planes of a pass"
        said = f"{what}: nz={{value}} of the domain {domain} is not a multiple of {passes}"
        yield Condition(value=along(2), multiple=together, because=what, said=said)


def _registers(case: Case, config: Persistent, limits: Limits) -> str | None:
    if not config.of_moments:
        return None
    if config.register_planes > _MOST_HELD:
        return f"register_planes={config.register_planes} is not supported (use up to {_MOST_HELD}): each has a text"
    cells = config.cells_per_thread * config.rows * (1 + config.register_planes)
    needed = config.kept.values(case.stencil) * cells * config.computed.bytes // 4
    allowed = registers_allowed(prod(config.block) * max(1, config.min_blocks))
    if needed <= allowed:
        return None
    what = f"moments of {cells} cells of a thread at once: {needed} registers; with these blocks it has {allowed}"
    return f"{what} (use fewer cells_per_thread, rows or register_planes, or a smaller block)"


@DomainRule
def _on_chip(case: Case, config: Persistent, limits: Limits) -> Iterator[str | Condition]:
    cells = config.block_cells(case.stencil)
    tile = extents(cells)
    needed, allowed = config.shared_bytes(case), limits.shared_bytes_per_block
    if needed > allowed:
        yield (
            f"a tile of {tile} needs {format_bytes(needed)} of shared memory; a block here has {format_bytes(allowed)}"
        )
    if not limits.cooperative:
        yield "family persistent is not supported by this device: it has no cooperative launch"
    each, many = blocks_at_once(case, config, limits), limits.multiprocessors
    yield Condition(
        value=lambda place: prod(blocks(place, cells, axis) for axis in range(3)),
        most=each,
        multiprocessors=many,
        because="all blocks run at once",
        said=f"{{value}} blocks of {tile} cells do not run at once: {many} multiprocessors hold {each} each",
    )


RULES = (
    moment_rules.moments,
    _moments,
    _faces,
    _tile,
    launch_rules.size,
    launch_rules.min_blocks,
    _registers,
    _on_chip,
    common_rules.flags,
    launch_rules.index_bits,
    launch_rules.grid,
)
