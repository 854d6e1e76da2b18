"""Temporal blocking on CUDA: thread blocks go up along z over tiles with a halo, several time steps per launch.

Each stage of a plane does one time step; the halo of a tile is computed redundantly. Kernels of moments may do one step
per launch, too. Source: 2.5D blocking, Nguyen et al. 2010; moments: see docs/guide/moments.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, lcm
from typing import ClassVar, Literal

from lbmtune.catalogue.backend_records import Block
from lbmtune.catalogue.boundaries.bounce_back_routes import WAITING, cuts, returning
from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES
from lbmtune.catalogue.families.groups import Bounded, Launched, Represented, ThreadBlocks
from lbmtune.catalogue.families.small_domains import is_flat, odd, rounded
from lbmtune.catalogue.footprint import pass_bytes
from lbmtune.catalogue.knobs import Acts, knob
from lbmtune.catalogue.layouts.layout import Extents, Int, Layout
from lbmtune.catalogue.layouts.rows import Rows
from lbmtune.catalogue.limits import SECTOR_BYTES, WARP
from lbmtune.catalogue.moments.basis import handed_on, rising_sums, sums_of_powers, upright
from lbmtune.catalogue.moments.representation import FUSED, POPULATIONS, Representation, representation
from lbmtune.catalogue.problem.case import Case
from lbmtune.lattice import Lattice

_FLAG_BYTES, _OFFSET_BYTES = 8, 4
_PIECE_BYTES = 16
"""Bulk copies move multiples of these bytes, from and to multiples of them. Source: PTX ISA, cp.async.bulk."""
_SHORT_CHUNK = 8
"""Most planes of a chunk on small domains; twice the steps of a launch if those are more."""
MAX_STEPS, MAX_ROWS, PACKS = 8, 8, (1, 2, 4, 8)
_FETCH = Acts(on="plane_fetch", values=("none",), unless=True, because="no plane is read ahead")


@dataclass(frozen=True, kw_only=True)
class TemporalBlocking(Launched, ThreadBlocks, Bounded, Represented):
    """Several time steps per launch: tiles with a halo that go up along z."""

    family: ClassVar[str] = "temporal-blocking"
    title: ClassVar[str] = "temporal blocking"
    layouts: ClassVar[tuple[str, ...]] = ("soa", "rows")
    without: ClassVar[frozenset[str]] = frozenset({"stride", "padding"})
    visits_solid_cells: ClassVar[bool] = True
    place_source: ClassVar[Literal["scheme", "list", "fixed"]] = "fixed"
    reads_halo: ClassVar[bool] = True
    tiled: ClassVar[bool] = True
    length_knob: ClassVar[str] = "chunk_planes"

    layout: Layout = knob(Rows(), "memory layout of a cell's values", search=("rows",), allowed=("soa", "rows"))
    block: Block = knob(
        (32, 8, 1),
        "threads per block: a warp along x, warps along y",
        unit="threads",
        search=("32x8x1", "32x11x1", "32x12x1", "32x16x1", "32x20x1"),
    )
    cells_per_thread: int = knob(
        1, "consecutive cells along x of a thread", unit="cells", search=(1, 2), allowed=(1, 2, 4, 8)
    )
    steps: int = knob(
        2, "time steps of a launch", unit="steps", search=(1, 2, 3), allowed=tuple(range(1, MAX_STEPS + 1))
    )
    rows: int = knob(
        1, "rows along y of a thread", unit="rows", search=(1, 2, 3), allowed=tuple(range(1, MAX_ROWS + 1))
    )
    pack: int = knob(
        1,
        "values of a cell that are adjacent in memory",
        unit="values",
        search=(1, 2, 4),
        allowed=PACKS,
        acts=(Acts(on="layout", values=("rows",), because="arrays of single values are what soa means"),),
    )
    chunk_planes: int = knob(64, "planes along z of a thread block", unit="planes", search=(32, 64, 96, 128), least=1)
    chunk_schedule: str = knob(
        "uniform",
        "planes per block: uniform, or tapered (fewer for blocks that start later)",
        allowed=("uniform", "tapered"),
    )
    plane_fetch: str = knob(
        "registers",
        "next plane: read when needed (none), ahead into registers, or into shared memory by cp.async or bulk copies",
        search=("registers", "cp_async"),
        allowed=("none", "registers", "cp_async", "bulk"),
    )
    overread: int = knob(
        0, "read one plane past the chunk, so that the loop needs no tail branch (1)", allowed=(0, 1), acts=(_FETCH,)
    )
    warp_sync: str = knob(
        "block",
        "warps that a warp waits for after an exchange: all of the thread block, or its two neighbours",
        allowed=("block", "neighbours"),
    )
    z_buffer: str = knob(
        "registers",
        "place of values that stream to the next plane along z: registers or shared memory",
        allowed=("registers", "shared"),
    )

    @property
    def scheme(self) -> str:
        """Return pull if moments are read from neighbours, push if populations are left where they arrived."""
        return "pull" if self.representation == "moments" else "push"

    @property
    def launch_sets_length(self) -> bool:
        """Return that the text is the same whatever the number of chunks: it takes it from the grid."""
        return True

    @property
    def kept(self) -> Representation:
        """Return what a cell keeps: populations lie in groups, as moments do."""
        found = representation(self.representation)
        return FUSED if found is POPULATIONS else found

    @property
    def memory(self) -> Layout:
        """Return the layout, whose rows lie in groups of `pack` values."""
        return Rows(self.pack) if isinstance(self.layout, Rows) else self.layout

    def single_step(self) -> TemporalBlocking:
        """Return the configuration of one step per launch, launched by itself."""
        return replace(self, steps=1, launch="call")

    def block_cells(self, lattice: Lattice) -> Block:
        """Return the cells along each axis that a thread block finishes."""
        return (*tile(lattice, self), 1 if lattice.dimensions == 2 else self.chunk_planes)

    def ends(self, case: Case) -> Block:
        """Return the cells along x that the first and the last block finish besides their tiles."""
        return ends(case, self), 0, 0

    def value_index(self, k: Int, x: Int, y: Int, z: Int, extents: Extents, lattice: Lattice) -> Int:
        """Return the element of value k of a cell; the last values may lie in a smaller group."""
        memory, pack, count = self.memory, self.pack, self.kept.values(lattice)
        whole, rest = count // pack * pack, count % pack
        size = k // whole * (rest - pack) + pack if rest else pack
        row = memory.along_y(y, extents) + memory.along_z(z, extents)
        return row + memory.component(k, extents) + x * size

    def short_block(self, case: Case) -> Block:
        """Return the cells of a thread block with short chunks along the axis that it goes up."""
        x, y, z = self.block_cells(case.stencil)
        planes = min(self.chunk_planes, max(_SHORT_CHUNK, 2 * self.steps))
        return (x, planes, z) if is_flat(case) else (x, y, planes)

    def awkward_domain(self, case: Case) -> Block:
        """Return extents of short chunks; with a tile at each face across x if those differ, and one between them."""
        x, y, z = self.short_block(case)
        unit = self.row_cells(1)
        if self.plane_fetch == "bulk":
            unit = lcm(unit, piece_cells(case.stencil, self))
        rest = ends(case, self)
        return rounded(case, unit, x + (x + rest if rest else 0), odd(y), odd(z))

    def population_bytes(self, case: Case) -> float:
        """Return the bytes of stored values per update: a launch of several steps reads and writes once."""
        return pass_bytes(case, self) / self.steps

    def shared_bytes(self, case: Case) -> int:
        """Return the shared memory of a block: what its warps exchange, what walls return, planes on their way."""
        lanes = WARP * self.block[1]
        ahead = _ahead_bytes(case, self) if self.plane_fetch in ("cp_async", "bulk") else 0
        cells = lanes * self.cells_per_thread * self.rows
        row_bytes = lanes * self.rows * _OFFSET_BYTES
        expected = lanes * self.cells_per_thread * WORD_BYTES
        words = (self.steps + 1) * cells * WORD_BYTES + expected + row_bytes if self.flags == "memory" else 0
        if case.stencil.dimensions == 2:
            return words + ahead
        exchanges = max(2, self.steps)
        sums_along_y = handed_on(case.stencil)
        rims = 4 if self.computed.bytes == 4 and sums_along_y >= 4 else 1
        sums = 2 * (sums_along_y * lanes + rims * WARP) * self.cells_per_thread * self.computed.bytes
        back = WAITING if self.of_moments else len(returning(case))
        kept = 2 * row_bytes + lanes * _OFFSET_BYTES
        returned = (cells * (back + self.steps) * self.computed.bytes + kept) if cuts(case) else 0
        flags = exchanges * self.block[1] * _FLAG_BYTES if self.warp_sync == "neighbours" else 0
        shelved = rising(case, self) * cells * self.steps if self.z_buffer == "shared" else 0
        return exchanges * sums + shelved * self.computed.bytes + returned + words + ahead + flags


def sector_cells(config: TemporalBlocking) -> int:
    """Return the cells that make whole sectors, and whole lanes: tiles are multiples of them."""
    return max(config.cells_per_thread, SECTOR_BYTES // (config.pack * config.stored.bytes))


def _halo(config: TemporalBlocking) -> int:
    """Cells of the rim of a tile along x, on each side: whole lanes."""
    cells = config.cells_per_thread
    return -(-config.steps // cells) * cells


def piece_cells(lattice: Lattice, config: TemporalBlocking) -> int:
    """Return the cells along x whose values make whole pieces of bulk copies, in all groups of values."""
    pack = config.pack
    sizes = {pack, config.kept.values(lattice) % pack or pack}
    return max(_PIECE_BYTES // gcd(_PIECE_BYTES, size * config.stored.bytes) for size in sizes)


def run_cells(case: Case, config: TemporalBlocking) -> int:
    """Return the cells of a row that bulk copies bring to a warp: its own, and a piece if it may begin within one."""
    piece = piece_cells(case.stencil, config)
    within = before_tile(case, config) % piece or sector_cells(config) % piece
    return WARP * config.cells_per_thread + (piece if within else 0)


def tile(lattice: Lattice, config: TemporalBlocking) -> tuple[int, int]:
    """Return the most cells along x and y that a block finishes; in two dimensions each warp has a tile of its own."""
    sector, warps = sector_cells(config), config.block[1]
    width = (WARP * config.cells_per_thread - 2 * _halo(config)) // sector * sector
    if lattice.dimensions == 2:
        return warps * width, config.chunk_planes
    return width, warps * config.rows - 2 * config.steps


def before_tile(case: Case, config: TemporalBlocking) -> int:
    """Return the cells of a block before its tile along x: its halo.

    Where walls end the domain, all tiles move to the left as far as sectors allow, so that the first one begins with
    the first cell: nothing is beyond.
    """
    halo = _halo(config)
    return halo % sector_cells(config) if _moved(case) else halo


def ends(case: Case, config: TemporalBlocking) -> int:
    """Return the cells along x that the first and last block finish besides their tiles: no halos lie beyond walls."""
    if not _moved(case):
        return 0
    return WARP * config.cells_per_thread - before_tile(case, config) - tile(case.stencil, config)[0]


def _moved(case: Case) -> bool:
    return case.walled_across(0) and case.stencil.dimensions == 3


def planes_together(case: Case, config: TemporalBlocking) -> int:
    """Return the planes that one pass of the loop takes.

    Measured on an H200: two gain 2 to 5 %, and lose as much where moments in single precision wait in registers.
    """
    waits = config.of_moments and config.storage == "fp32" and config.plane_fetch == "registers"
    shelved = config.z_buffer == "shared"  # then it is rows that registers are for
    return 1 if config.steps == 1 or cuts(case) or waits or shelved else 2


def rising(case: Case, config: TemporalBlocking) -> int:
    """Return the values of a cell that go up along z and wait for the next plane: populations, or sums of them."""
    if not config.of_moments:
        return sum(c[2] == 1 for c in case.stencil.velocities)
    return rising_sums(case.stencil)


def waiting(case: Case, config: TemporalBlocking) -> int:
    """Return the values of a cell that wait for the next plane in a stage: populations, or sums of them.

    Of populations what goes up waits for two planes, and what stays for one. Of moments the sums of what stays wait,
    those of what goes up, and with them what moments with c_z have so far.
    """
    if not config.of_moments:
        return case.stencil.q
    stay, rise = (sums_of_powers(upright(case.stencil), c_z) for c_z in (0, 1))
    return len(stay) + len(rise) + sum(sum(powers) < 2 for powers in rise)


def waiting_words(case: Case, config: TemporalBlocking) -> int:
    """Return the registers that a thread takes for what waits in them for the next plane, in all stages."""
    shelved = rising(case, config) if config.z_buffer == "shared" else 0
    cells = config.cells_per_thread * config.rows
    return cells * config.steps * (waiting(case, config) - shelved) * (config.computed.bytes // WORD_BYTES)


def _ahead_bytes(case: Case, config: TemporalBlocking) -> int:
    """Bytes of the plane that is on its way to shared memory, and of the flags that say that it is there."""
    warps, cells = config.block[1], WARP * config.cells_per_thread
    of_cell = config.kept.values(case.stencil) * config.stored.bytes
    if config.plane_fetch != "bulk":
        return warps * config.rows * cells * of_cell
    return warps * (config.rows * run_cells(case, config) * of_cell + _FLAG_BYTES)
