"""The storage of a best.json: where a solver finds and puts populations or moments, in lattice units."""

from dataclasses import dataclass

from lbmtune.records.kernel_format import Int3


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
    such a neighbour lead to itself.
    """

    order: str
    granule: int
    sites: int
    nodes: int
    pointers: tuple[LinkRow, ...]
    masked: tuple[Int3, ...]
    rows: int
    chased: bool = False


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The element at `index` holds the sum over i of c_x^a c_y^b c_z^c (f_i - w_i) / w_min, times scale.

    order: a, b, c; index: in C, of the cell (x, y, z) and the extents NX, NY, NZ.
    """

    order: Int3
    index: str


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Layout of populations in a buffer: the element at `index` holds (f_i - w_i) * scale as `dtype`.

    index: in C, of the storage cell (X, Y, Z) and slot Q; (X, Y, Z) is the fluid cell (x, y, z) plus `origin`.
    Extents: the storage cells along each axis, as formulas of nx, ny, nz. ghost: axes with ghost cells; along
    the others coordinates wrap around. blocks: if given, ghost cells lie around every block of that many cells, and X
    is x / bx * (bx + 2) + x % bx + 1 with the extent bx of the block along x (along y and z likewise); an extent of 0:
    no blocks along that axis.
    locations[p]: one per direction, for a state of parity p.
    wall_term: the 6 w_i c_i.u_wall of a moving wall is added by the reader or the writer of a cut link.
    links: with indirect addressing, for which X is the node of a cell; null for cells of a box.
    moments: if a cell keeps them instead of populations, before collision; `index` and `locations` are then empty.
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
