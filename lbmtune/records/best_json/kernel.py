"""The kernel of a best.json: texts, launches, buffers and arguments, and where a solver finds and puts its state.

Lattice quantities are in lattice units.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated

import msgspec

from lbmtune.records.best_json.domain import DomainRules
from lbmtune.records.best_json.law import CHUNKS, Chunks

Int3 = tuple[int, int, int]
MOST_EXTENT = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class LaunchGeometry:
    """One launch. arguments: names of buffers and scalars in the order of the entry's parameters.

    grid_formula: blocks along x, y, z in C, with integer division, that along z perhaps 'chunks' (`Kernel.chunks`);
    grid: its values for the case's domain.
    over: 'cells' (the fluid domain), 'shell' (the layer of ghost cells, counted along x), 'sites' (of indirect
    addressing, counted along x) or 'wall_links' (links whose walls are interpolated, counted along x); covers: number
    of those that a block takes along each axis; ends: number that the first and the last block take besides, together.
    mode: 'plain'; 'cooperative': all blocks run at once (cooperative launch); 'dependent': it may begin before the
    previous launch has ended (programmatic stream serialization), and synchronises with that launch itself.
    """

    entry: str
    arguments: tuple[str, ...]
    block: Int3
    covers: Int3
    over: str
    grid_formula: tuple[str, str, str]
    grid: Int3
    shared_bytes: int
    mode: str = "plain"
    ends: Int3 = (0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """A copy of the lattice, or a constant table. elements: for the case's domain; elements_formula: for any, in C.

    'flags': one word per cell, x fastest; bit i: a wall or a solid cell cuts the link by which f_i arrives; bit 0: the
    cell is solid, and all other bits are set. 'moving': the same bits if that wall moves. Bits above those of the links
    are described by `Kernel.types`.
    'links': the list of indirect addressing, see `Links`. 'barrier': words that are 0 before the first launch.
    'faces': exchange of tiles on chip; 'macroscopics': density and velocity, written by steps. Launches read nothing of
    these two that no launch has written.
    'wall_at_p', 'wall_from_p', 'wall_share': for each of the `wall_links` links along c_i from a fluid cell x to a
    solid one whose cell behind, x - c_i, is fluid, with the part q of the link up to the wall: the element of
    f_opp(x) in a state of parity p; that of f_i(x) if q < 1/2, else of f_opp(x - c_i); the weight of the former, 2 q
    or 1 / (2 q).
    """

    name: str
    dtype: str
    elements: int
    elements_formula: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Argument:
    """A scalar argument. type: int32, float32 or float64; value: for this case, in storage units."""

    type: str
    value: float


@dataclass(frozen=True, kw_only=True)
class CellType:
    """A condition of a cell: `bits` bits of its word, from bit `shift` on, hold `number`.

    kind: of boundary; face: 'x-' to 'z+', or '' for a moving wall; patch: number from 1 of the patch of the case with
    its values, 0: those of the case itself. Several moving walls have a bit each: a cell has the bit of each wall that
    cuts a link of it.
    """

    kind: str
    face: str
    patch: int
    shift: int
    bits: int
    number: int


Launches = Annotated[tuple[LaunchGeometry, ...], msgspec.Meta(min_length=1)]


@dataclass(frozen=True, kw_only=True)
class SingleStep:
    """A kernel for one time step on the same buffers with the same arguments, for steps that do not fill a launch.

    source, options and source_digest: as in `Kernel`; launches: of the step, after which the roles of the buffers swap
    as after any launch of the other kernel. `Verification.single` holds its verification.
    """

    source: str
    source_digest: str
    options: tuple[str, ...]
    launches: Launches


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """The program. target: 'cuda' or 'cpu'; source: its text; options: of the compiler.

    source_digest: SHA-256 of target, options and source, joined by zero bytes; binary_digest: of the measured code.
    period[p]: the launches of one time step that starts at parity p = step number modulo the length; two buffers swap
    roles after every step, unless keeps_roles. steps: time steps of each of these; if it is not 1, p is the number of
    such launches modulo the length, and buffers swap after each. A launch with an argument 'steps' does that many
    steps, and swaps the roles of the buffers as often. max_elements: longest buffer that the indices of the text can
    address; null: no limit. slots: for each argument that is the start of a slot in the buffer f0, the number of the
    element there, in C; the argument is a pointer to that element ('cuda') or the number as int64 ('cpu'). types: bits
    of the words of 'flags' besides links, or with indirect addressing of the last row of 'links'. single: a kernel for
    one step, if a launch does several and no fewer. opening[p]: launches before the first step of a state or of other
    arguments, if that step starts at parity p. keeps_roles: two buffers do not swap roles: each step ends where it
    began. domain: what a domain must obey; null in files of version 1, which do not say it. chunks: number of blocks
    along z, which `grid_formula` then calls so and which follows from the domain; null: `grid_formula` says it.
    """

    target: str
    source: str
    source_digest: str
    binary_digest: str
    options: tuple[str, ...]
    period: Annotated[tuple[Launches, ...], msgspec.Meta(min_length=1)]
    buffers: Annotated[tuple[Buffer, ...], msgspec.Meta(min_length=1)]
    arguments: dict[str, Argument]
    max_elements: int | None = None
    steps: int = 1
    slots: dict[str, str] = field(default_factory=dict)
    types: tuple[CellType, ...] = ()
    single: SingleStep | None = None
    opening: tuple[tuple[LaunchGeometry, ...], ...] = ()
    keeps_roles: bool = False
    domain: DomainRules | None = None
    chunks: Chunks | None = None

    def with_launches(self, change: Callable[[LaunchGeometry], LaunchGeometry]) -> "Kernel":
        """Return the program with all launches changed, those of single steps too."""
        period, opening = (tuple(tuple(map(change, step)) for step in steps) for steps in (self.period, self.opening))
        single = self.single and replace(self.single, launches=tuple(map(change, self.single.launches)))
        return replace(self, period=period, opening=opening, single=single)

    def following(self, chunks: Chunks) -> "Kernel":
        """Return the program with a number of blocks along z that follows from the domain, which may then be any."""
        rules = self.domain and replace(
            self.domain,
            least=(*self.domain.least[:2], min(self.domain.least[2], 2 * self.steps)),
            most=(*self.domain.most[:2], MOST_EXTENT),
            because=tuple(one for one in self.domain.because if not one.startswith("nz")),
        )
        changed = self.with_launches(lambda one: replace(one, grid_formula=(*one.grid_formula[:2], CHUNKS)))
        return replace(changed, domain=rules, chunks=chunks)


def source_digest(kernel: Kernel | SingleStep, target: str) -> str:
    """Return the digest of the text of a kernel."""
    return hashlib.sha256("\0".join((target, *kernel.options, kernel.source)).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Location:
    """Place of f_i of a cell before collision: in the array `slot` at the cell plus `offset`.

    cut_slot, cut_offset: the same if a wall cuts the link by which f_i arrives.
    """

    direction: int
    slot: int
    offset: Int3
    cut_slot: int
    cut_offset: Int3


@dataclass(frozen=True, kw_only=True)
class LinkRow:
    """A row of the list of indirect addressing: for each site, the node at offset `open` from it.

    link: if a wall cuts this link, it is the node at offset `cut` instead, and bit 31 is set, also bit 30 if the wall
    moves; null: no wall changes it.
    """

    open: Int3
    cut: Int3
    link: Int3 | None


@dataclass(frozen=True, kw_only=True)
class Links:
    """The buffer 'links': rows of `sites` 32-bit words, one for each pointer, then one for the mask if it has links.

    One more row comes last if cells have types (`Kernel.types`).

    Nodes are numbered: the fluid cells in `order`, spare sites up to `sites` (a multiple of `granule`, at least one;
    their words lead to themselves), then the other cells that hold places of fluid cells, in `order`; `nodes` is their
    number, rounded up likewise. masked: bit n of the mask is set if link n is cut; bit 30 if a moving wall cuts one of
    them; a further row then has those links, if any wall of the case moves.
    chased: rows have `nodes` words, and the pointers of one step have words for every node; those of a node without
    such a neighbour lead to itself. chains: the other pointers, found by chasing; they have no rows, but other cells
    that they lead to are nodes.
    """

    order: str
    granule: int
    sites: int
    nodes: int
    pointers: tuple[LinkRow, ...]
    masked: tuple[Int3, ...]
    rows: int
    chased: bool = False
    chains: tuple[LinkRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The element at `index` holds the sum over i of c_x^a c_y^b c_z^c (f_i - w_i) / w_min, times scale.

    order: a, b, c; index: in C, of the cell (x, y, z) and the extents NX, NY, NZ.
    """

    order: Int3
    index: str


@dataclass(frozen=True, kw_only=True)
class NumberCodes:
    """A number in 16 bits: from the top a sign, the exponent and the mantissa, as in IEEE formats.

    exponent_bits, mantissa_bits: their widths; bias: of the exponent. Exponent 0 holds subnormal numbers. infinite:
    whether the largest exponent holds infinity and NaN; if not, it holds numbers, and a larger value is stored as the
    largest number. Values are rounded to the nearest number, ties to the even code.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    infinite: bool


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Layout of populations in a buffer: the element at `index` holds (f_i - shift * w_i) * scale as `dtype`.

    index: in C, of the storage cell (X, Y, Z) and slot Q; (X, Y, Z) is the fluid cell (x, y, z) plus `origin`.
    Extents: the storage cells along each axis, as formulas of nx, ny, nz. ghost: axes with ghost cells; along
    the others coordinates wrap around. blocks: if given, ghost cells lie around every block of that many cells, and X
    is x / bx * (bx + 2) + x % bx + 1 with the extent bx of the block along x (along y and z likewise); an extent of 0:
    no blocks along that axis.
    locations[p]: one per direction, for a state of parity p.
    wall_term: the 6 w_i c_i.u_wall of a moving wall is added by the reader or the writer of a cut link.
    links: with indirect addressing, for which X is the node of a cell; null for cells of a box.
    moments: if a cell keeps them instead of populations, before collision; `index` and `locations` are then empty.
    shift: 1, or 0 if populations are stored as they are. codes: of elements of 16 bits; null in older files.
    """

    dtype: str
    scale: float
    index: str
    extents: tuple[str, str, str]
    origin: Int3
    ghost: tuple[bool, bool, bool]
    velocities: tuple[Int3, ...]
    weights: tuple[str, ...]
    locations: tuple[tuple[Location, ...], ...]
    wall_term: str
    blocks: Int3 | None = None
    links: Links | None = None
    moments: tuple[Moment, ...] = ()
    shift: int = 1
    codes: NumberCodes | None = None
