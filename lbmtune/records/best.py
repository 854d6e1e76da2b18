"""best.json: the best kernel of a study with all that a solver needs to run it, and its expected speed.

The types below are the format. `best.schema.json` is the JSON Schema made from them (`schema`), shipped beside
this file. Quantities are in SI base units except MLUPS; lattice quantities are in lattice units.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from lbmtune.catalogue.config import KernelConfig, Scalar, from_flat
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError
from lbmtune.records import Accuracy, Conditions, Environment, Prediction, Resources, Sustained, Verification
from lbmtune.records.legacy import config_of, is_legacy, previous_key
from lbmtune.records.study import Ceiling

FORMAT, BEST_VERSION = "lbmtune.best", 1
SCHEMA = Path(__file__).with_name("best.schema.json")
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
    began.
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


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Measured speed of the kernel. ci_low_mlups, ci_high_mlups: 95 % confidence interval of the median.

    mlups and its interval are of a burst: samples of a fraction of a second, which a power limit hardly affects.
    sustained: of a run of seconds without a pause, if made.
    share_of_ceiling: bandwidth over the ceiling of the study (`Ceiling.best_bytes_per_s`).
    """

    mlups: float
    ci_low_mlups: float
    ci_high_mlups: float
    bandwidth_bytes_per_s: float
    bytes_per_update: float
    footprint_bytes: int
    share_of_ceiling: float
    samples: int
    conditions: Conditions
    disturbed: bool
    sustained: Sustained | None = None


@dataclass(frozen=True, kw_only=True)
class Alternate:
    """A verified configuration of a lower rank."""

    rank: int
    key: str
    configuration: dict[str, Scalar]
    mlups: float
    ci_low_mlups: float
    ci_high_mlups: float


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best kernel of a study. format and version: checked first.

    accuracy: L2 errors of a Taylor-Green vortex in the storage format and precision of the kernel, if measured.
    """

    study: str
    objective: str
    case: Case
    key: str
    configuration: dict[str, Scalar]
    kernel: Kernel
    storage: Storage
    expected: Expected
    ceiling: Ceiling
    environment: Environment
    verification: Verification | None
    resources: Resources | None
    prediction: Prediction | None
    alternates: tuple[Alternate, ...]
    date: str
    lbmtune: str
    accuracy: Accuracy | None = None
    format: str = FORMAT
    version: int = field(default=BEST_VERSION)

    @property
    def config(self) -> KernelConfig:
        """The configuration. Raises InputError."""
        return from_flat(self.configuration)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of best.json, made from the types."""
    made: dict[str, Any] = msgspec.json.schema(Best)
    best = made["$defs"]["Best"]
    best["properties"]["format"]["const"] = FORMAT
    best["properties"]["version"]["const"] = BEST_VERSION
    best["required"] += ["format", "version"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{FORMAT}, version {BEST_VERSION}",
        **made,
    }


def encode_best(best: Best) -> bytes:
    """Return the content of a best.json."""
    return msgspec.json.format(msgspec.json.encode(best)) + b"\n"


def read_best(path: Path) -> Best:
    """Read and validate a best.json. Raises InputError if it is missing, damaged, of another version, or changed."""
    values = _values(path)
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError(f"{path} is not a best.json: its format is not {FORMAT!r}; lbmtune export writes one.")
    if values.get("version") != BEST_VERSION:
        raise InputError(
            f"{path} has version {values.get('version')!r} of {FORMAT}, this lbmtune reads version {BEST_VERSION}; "
            "export the study again with this lbmtune."
        )
    _check_schema(values, path)
    try:
        best = msgspec.convert(values, type=Best)
    except (msgspec.ValidationError, InputError) as error:
        raise InputError(f"{path} is damaged: {error}; export the study again.") from error
    if is_legacy(best.configuration):
        best = _current(best, path)
    _check_digests(best, path)
    return best


def _current(best: Best, path: Path) -> Best:
    """Return what version 0.1 wrote, with configurations and keys of today. Raises InputError."""
    try:
        config = config_of(best.configuration)
        others = tuple(
            replace(one, key=found.key, configuration=found.flat())
            for one in best.alternates
            for found in (config_of(one.configuration),)
        )
    except InputError as error:
        raise InputError(f"{path} holds a configuration that this lbmtune does not know: {error}") from error
    if previous_key(config) != best.key:
        raise InputError(f"{path} is damaged: its configuration has not the key {best.key}; export again.")
    return replace(best, key=config.key, configuration=config.flat(), alternates=others)


def source_digest(kernel: Kernel | SingleStep, target: str) -> str:
    """Return the digest of the text of a kernel."""
    return hashlib.sha256("\0".join((target, *kernel.options, kernel.source)).encode()).hexdigest()


def _values(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a best.json that lbmtune wrote.") from error
    except ValueError as error:
        raise InputError(f"{path} is damaged: it is not JSON ({error}); export the study again.") from error


def _check_schema(values: Any, path: Path) -> None:
    import jsonschema

    error = jsonschema.exceptions.best_match(_validator().iter_errors(values))
    if error:
        raise InputError(f"{path} is damaged at {error.json_path}: {error.message[:200]}; export the study again.")


@cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _check_digests(best: Best, path: Path) -> None:
    kernels: list[Kernel | SingleStep] = [best.kernel]
    if best.kernel.single:
        kernels.append(best.kernel.single)
    for kernel in kernels:
        if source_digest(kernel, best.kernel.target) != kernel.source_digest:
            raise InputError(
                f"{path} is damaged: its kernel source is not the one that was verified and measured "
                f"(digest {kernel.source_digest[:12]}); export the study again."
            )
    try:
        key = best.config.key
    except InputError as error:
        raise InputError(f"{path} holds a configuration that this lbmtune does not know: {error}") from error
    if key != best.key:
        raise InputError(f"{path} is damaged: its configuration has the key {key}, not {best.key}; export again.")
