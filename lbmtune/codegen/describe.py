"""A kernel and its state in memory as data and formulas: what a program needs that launches it without this package."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.families.cuda.face_exchange import array_elements
from lbmtune.catalogue.families.cuda.persistent import face_elements
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.layouts.layout import Extents
from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.precision import HALF
from lbmtune.catalogue.precision import Storage as StorageFormat
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.problem.faces import SIDES
from lbmtune.catalogue.schemes.scheme import Access
from lbmtune.catalogue.sparse.index_list import Pointer, listed_rows
from lbmtune.catalogue.storage_frame import Domain, StorageFrame
from lbmtune.codegen.describe_domain import domain_rules
from lbmtune.codegen.passes import FACE_ARRAYS, SLOT
from lbmtune.codegen.program import (
    APART,
    BARRIER,
    COUNTS,
    LIST,
    MACROSCOPICS,
    RINGS,
    SENT_SUMS,
    WALL_LINKS,
    WALL_PLACES,
    WALL_SHARE,
    Launch,
    Program,
)
from lbmtune.codegen.render import render_single
from lbmtune.codegen.trace import Traced, plain
from lbmtune.records import made_of
from lbmtune.records.best_json.kernel import (
    Argument,
    Buffer,
    CellType,
    Kernel,
    LaunchGeometry,
    LinkRow,
    Links,
    Location,
    Moment,
    NumberCodes,
    SingleStep,
    Storage,
    source_digest,
)

_DOMAIN = Domain(Traced("nx"), Traced("ny"), Traced("nz"))
_CELLS = "nx * ny * nz"


def describe_kernel(program: Program, binary_digest: str = "", limits: Limits | None = None) -> Kernel:
    """Return the program as data, with launch geometry and argument values for its own case.

    limits: of the device, on which it depends how many blocks run at once.
    """
    kernel = Kernel(
        target=program.target,
        source=program.source,
        source_digest="",
        binary_digest=binary_digest,
        options=program.options,
        period=tuple(tuple(launch_geometry(program, launch) for launch in step) for step in program.period),
        buffers=tuple(_buffers(program)),
        arguments=_arguments(program),
        max_elements=program.max_elements,
        steps=program.steps,
        slots=_slots(program),
        types=tuple(_types(program)),
        single=_single(program),
        opening=tuple(tuple(launch_geometry(program, launch) for launch in step) for step in program.prologue),
        domain=domain_rules(program, limits or Limits()),
        keeps_roles=len(program.buffers()) > 1 and not program.config.exchanges(program.case.stencil),
    )
    return replace(kernel, source_digest=source_digest(kernel, program.target))


def _single(program: Program) -> SingleStep | None:
    single = render_single(program)
    if single is None:
        return None
    (launches,) = single.period
    geometry = tuple(launch_geometry(single, launch) for launch in launches)
    step = SingleStep(source=single.source, source_digest="", options=single.options, launches=geometry)
    return replace(step, source_digest=source_digest(step, single.target))


def _slots(program: Program) -> dict[str, str]:
    """Return the formulas of the elements where slots and arrays of faces start that launches take."""
    memory, symbols = program.config.memory, _symbolic_extents(program)
    starts = {}
    for name in program.slot_starts(program.case.domain):
        if name in FACE_ARRAYS:
            state = memory.length(symbols)
            starts[name] = plain(state if name == FACE_ARRAYS[0] else f"{state} + {_faces_array(program)}")
        else:
            starts[name] = plain(memory.component(int(name.removeprefix(SLOT)), symbols))
    return starts


def _symbolic_extents(program: Program) -> Extents:
    """Return the storage extents as symbols NX, NY and NZ."""
    return Extents(Traced("NX"), Traced("NY"), Traced("NZ"), program.frame.q)


def _faces_array(program: Program) -> Any:
    config: Any = program.config
    return array_elements(program.case.stencil, config, _DOMAIN)


def _types(program: Program) -> Iterator[CellType]:
    """Yield what the words of cells say besides their links, if launches take such words."""
    if not {LIST, WORDS} & {*program.arguments}:
        return
    words = words_of(program.case, program.config)
    for c, field in words.conditions:
        yield CellType(kind=c.kind, face=SIDES[c.face], patch=c.patch, **field._asdict())
    for patch, field in words.walls:
        yield CellType(kind="moving", face="", patch=patch, **field._asdict())


def launch_geometry(program: Program, launch: Launch) -> LaunchGeometry:
    """Return a launch with its grid as formula and for the program's domain."""
    formula, grid = _grid_formula(launch, program.frame), program.grid(launch, program.case.domain)
    return made_of(LaunchGeometry, launch, grid_formula=formula, grid=grid)


def _buffers(program: Program) -> Iterator[Buffer]:
    """Yield the copies of the lattice, then the other buffers."""
    domain, stored = program.case.domain, program.config.stored
    formula = plain(program.config.memory.length(_symbolic_extents(program)))
    if FACE_ARRAYS[0] in program.arguments:
        formula += f" + 2 * {_faces_array(program)}"
    elements = program.buffer_elements(domain)
    for name, size in zip(program.buffers(), program.array_bytes(domain), strict=True):
        yield Buffer(name=name, dtype=stored.dtype, elements=elements, elements_formula=formula, bytes=size)
    for name, elements in program.other_buffers(domain).items():
        dtype, formula = program.dtype_of(name), _FORMULAS[name](program)
        size = elements * (8 if dtype == "float64" else 4)
        yield Buffer(name=name, dtype=dtype, elements=elements, elements_formula=formula, bytes=size)


def _list_formula(program: Program) -> str:
    config: Any = program.config
    words = "nodes" if config.chases else "sites"
    return f"{listed_rows(program.case, config).rows} * {words}"


def _barrier_formula(program: Program) -> str:
    words = program.other_buffers(program.case.domain)[BARRIER]
    ((launch,),) = program.period
    blocks = " * ".join(f"({along})" for along in _grid_formula(launch, program.frame))
    return str(words) if words == COUNTS else f"{APART} * {blocks}"


def _sums_formula(program: Program) -> str:
    config: Any = program.config
    return plain(face_elements(program.case.stencil, config, _DOMAIN))


_FORMULAS: Mapping[str, Callable[[Program], str]] = {
    WORDS: lambda _: _CELLS,
    MOVING_WORDS: lambda _: _CELLS,
    LIST: _list_formula,
    MACROSCOPICS: lambda _: f"{MACROSCOPIC_FIELDS} * {_CELLS}",
    BARRIER: _barrier_formula,
    SENT_SUMS: _sums_formula,
    RINGS: lambda program: str(program.other_buffers(program.case.domain)[RINGS]),
    **{name: lambda _: WALL_LINKS for name in (*chain(*WALL_PLACES), WALL_SHARE)},
}
"""Elements of the other buffers as formulas in C."""


def _arguments(program: Program) -> dict[str, Argument]:
    real, used = program.config.computed.dtype, program.arguments
    return {
        name: Argument(type="int32" if isinstance(value, int) else real, value=value)
        for name, value in program.scalars(program.case).items()
        if name in used
    }


def _grid_formula(launch: Launch, frame: StorageFrame) -> tuple[str, str, str]:
    totals: tuple[str, str, str] = ("nx", "ny", "nz")
    if launch.over in ("sites", "wall_links"):
        totals = (launch.over, "1", "1")
    if launch.over == "shell":
        outer = " * ".join(f"({n} + 2)" if ghost else n for n, ghost in zip(totals, frame.ghost, strict=True))
        totals = (f"({outer} - nx * ny * nz)", "1", "1")
    x, y, z = (_blocks(*one) for one in zip(totals, launch.covers, launch.ends, strict=True))
    return x, y, z


def _blocks(total: str, covered: int, more: int) -> str:
    if more:
        return f"{total} > {more} ? ({total} + {covered - 1 - more}) / {covered} : 1"
    return total if covered == 1 or total == "1" else f"({total} + {covered - 1}) / {covered}"


def describe_storage(program: Program) -> Storage:
    """Return the place of each f_i(x, t), or of each moment."""
    config, stencil, frame = program.config, program.case.stencil, program.frame
    listed = LIST in program.arguments
    extents = ("nodes", "1", "1") if listed else tuple(map(plain, frame.extents(_DOMAIN)[:3]))
    places = _places_of_moments(program) if config.of_moments else _places_of_populations(program)
    return Storage(
        dtype=config.stored.dtype,
        scale=config.unit,
        extents=(f"NX = {extents[0]}", f"NY = {extents[1]}", f"NZ = {extents[2]}"),
        origin=(0, 0, 0) if listed else frame.origin,
        ghost=(False, False, False) if listed else frame.ghost,
        velocities=stencil.velocities,
        weights=tuple(map(str, stencil.weights)),
        blocks=_ghost_blocks(frame),
        links=_links(program) if listed else None,
        shift=int(config.stored.shifted),
        codes=_codes(config.stored),
        **places,
    )


def _codes(stored: StorageFormat) -> NumberCodes | None:
    codes = stored.codes or (HALF if stored.bytes == 2 else None)
    if codes is None:
        return None
    widths = {"exponent_bits": codes.exponent_bits, "mantissa_bits": codes.mantissa_bits}
    return NumberCodes(**widths, bias=codes.bias, infinite=codes.special)


def _ghost_blocks(frame: StorageFrame) -> tuple[int, int, int] | None:
    """Return the extents of blocks with ghost cells around them, 0 along an axis without ghost cells."""
    if frame.blocks is None:
        return None
    x, y, z = (block if ghost else 0 for block, ghost in zip(frame.blocks, frame.ghost, strict=True))
    return (x, y, z)


def _places_of_populations(program: Program) -> dict[str, Any]:
    config, stencil = program.config, program.case.stencil
    phases = config.propagation.phases(stencil)
    x, y, z, q = map(Traced, "XYZQ")
    return {
        "index": plain(config.value_index(q, x, y, z, _symbolic_extents(program), stencil)),
        "locations": tuple(tuple(_location(a, config.implicit) for a in phase.accesses) for phase in phases),
        "wall_term": phases[0].wall_term,
    }


def _places_of_moments(program: Program) -> dict[str, Any]:
    stencil, symbols = program.case.stencil, _symbolic_extents(program)
    x, y, z = map(Traced, "xyz")
    places = [program.config.value_index(k, x, y, z, symbols, stencil) for k in range(symbols.q)]
    moments = tuple(Moment(order=n, index=plain(at)) for n, at in zip(orders(stencil), places, strict=True))
    return {"index": "", "locations": (), "wall_term": "none", "moments": moments}


def _links(program: Program) -> Links:
    from lbmtune.catalogue.sparse.nodes import counts, granule  # here: NumPy is not needed to start

    config: Any = program.config
    rows = listed_rows(program.case, config)
    _, sites, nodes = counts(program.case, config)
    return Links(
        order=config.order,
        granule=granule(config),
        sites=sites,
        nodes=nodes,
        pointers=tuple(_row(p) for p in rows.kept),
        masked=rows.masked,
        rows=rows.rows,
        chased=rows.chased,
        chains=tuple(_row(p) for p in rows.pointers if p not in rows.kept),
    )


def _row(found: Pointer) -> LinkRow:
    return LinkRow(open=found.open, cut=found.cut, link=found.link)


def _location(access: Access, implicit: bool) -> Location:
    read, cut = access.read, access.read if implicit else access.cut_read
    return Location(
        direction=access.direction, slot=read.slot, offset=read.offset, cut_slot=cut.slot, cut_offset=cut.offset
    )
