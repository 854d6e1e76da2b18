"""The kernel of a best.json: texts, launches, buffers and arguments. Lattice quantities are in lattice units."""

import hashlib
from dataclasses import dataclass, field

from lbmtune.records.domain_format import DomainRules

Int3 = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class LaunchGeometry:
    """One launch. arguments: names of buffers and scalars in the order of the entry's parameters.

    grid_formula: blocks along x, y, z in C, with integer division; grid: its values for the case's domain.
    over: 'cells' (the fluid domain), 'shell' (the layer of ghost cells, counted along x) or 'sites' (of indirect
    addressing, counted along x); covers: number of those that a block takes along each axis; ends: number that the
    first and the last block take besides, together. mode: 'plain'; 'cooperative': all blocks run at once (cooperative
    launch); 'dependent': it may begin before the previous launch has ended (programmatic stream serialization), and
    synchronises with that launch itself.
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


@dataclass(frozen=True, kw_only=True)
class SingleStep:
    """A kernel for one time step on the same buffers with the same arguments, for steps that do not fill a launch.

    source, options and source_digest: as in `Kernel`; launches: of the step, after which the roles of the buffers swap
    as after any launch of the other kernel. `Verification.single` holds its verification.
    """

    source: str
    source_digest: str
    options: tuple[str, ...]
    launches: tuple[LaunchGeometry, ...]


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
    began. domain: what a domain must obey; null in files of version 1, which do not say it.
    """

    target: str
    source: str
    source_digest: str
    binary_digest: str
    options: tuple[str, ...]
    period: tuple[tuple[LaunchGeometry, ...], ...]
    buffers: tuple[Buffer, ...]
    arguments: dict[str, Argument]
    max_elements: int | None = None
    steps: int = 1
    slots: dict[str, str] = field(default_factory=dict)
    types: tuple[CellType, ...] = ()
    single: SingleStep | None = None
    opening: tuple[tuple[LaunchGeometry, ...], ...] = ()
    keeps_roles: bool = False
    domain: DomainRules | None = None


def source_digest(kernel: Kernel | SingleStep, target: str) -> str:
    """Return the digest of the text of a kernel."""
    return hashlib.sha256("\0".join((target, *kernel.options, kernel.source)).encode()).hexdigest()
