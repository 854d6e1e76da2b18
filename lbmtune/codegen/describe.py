"""A program in words and formulas: what somebody needs to know who launches it without this package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lbmtune.catalogue.boundaries.cell_flags import WORD_BYTES
from lbmtune.catalogue.config import CpuConfig, CudaConfig
from lbmtune.catalogue.families.cpu.moments_wavefront import kept_index
from lbmtune.catalogue.families.cuda.face_exchange import array_elements
from lbmtune.catalogue.families.cuda.persistent import face_elements
from lbmtune.catalogue.families.cuda.temporal_blocking import value_index
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS, macroscopic_bytes
from lbmtune.catalogue.layouts.layout import Extents, index
from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.problem.cell_types import words_of
from lbmtune.catalogue.problem.faces import SIDES
from lbmtune.catalogue.schemes.scheme import Access
from lbmtune.catalogue.sparse.index_list import listed_rows
from lbmtune.catalogue.storage import Domain, StorageFrame
from lbmtune.codegen.passes import FACE_ARRAYS, SLOT
from lbmtune.codegen.program import (
    APART,
    BARRIER,
    COUNTS,
    LIST,
    MACROSCOPICS,
    RINGS,
    SENT_SUMS,
    Launch,
    Program,
    scalars,
)
from lbmtune.codegen.render import render_single
from lbmtune.codegen.trace import Traced
from lbmtune.records.best import (
    Argument,
    Buffer,
    CellType,
    Kernel,
    LaunchGeometry,
    LinkRow,
    Links,
    Location,
    Moment,
    SingleStep,
    Storage,
    source_digest,
)

_DOMAIN = Domain(Traced("nx"), Traced("ny"), Traced("nz"))


def describe_kernel(program: Program, binary_digest: str = "") -> Kernel:
    """The program as data, with launch geometry and argument values for its own case."""
    kernel = Kernel(
        target=program.target,
        source=program.source,
        source_digest="",
        binary_digest=binary_digest,
        options=program.options,
        period=tuple(tuple(launch_geometry(program, launch) for launch in step) for step in program.period),
        buffers=_buffers(program),
        arguments=_arguments(program),
        max_elements=program.max_elements,
        steps=program.steps,
        slots=_slots(program),
        types=tuple(_types(program)),
        single=_single(program),
        opening=tuple(tuple(launch_geometry(program, launch) for launch in step) for step in program.prologue),
        keeps_roles=len(program.buffers()) > 1 and not program.config.exchanges(program.case.stencil),
    )
    return replace(kernel, source_digest=source_digest(kernel, program.target))


def _single(program: Program) -> SingleStep | None:
    """The kernel for steps that are left over."""
    one = render_single(program)
    if one is None:
        return None
    (launches,) = one.period
    step = SingleStep(
        source=one.source,
        source_digest="",
        options=one.options,
        launches=tuple(launch_geometry(one, launch) for launch in launches),
    )
    return replace(step, source_digest=source_digest(step, one.target))


def _slots(program: Program) -> dict[str, str]:
    """Where slots start that launches take by themselves, and arrays of what crosses between tiles."""
    memory, symbols = program.config.memory, _symbols(program)
    found = {}
    for name in program.slot_starts(program.case.domain):
        if name in FACE_ARRAYS:
            state, array = memory.length(symbols), _faces_array(program)
            found[name] = _plain(state if name == FACE_ARRAYS[0] else f"{state} + {array}")
        else:
            found[name] = _plain(memory.component(int(name.removeprefix(SLOT)), symbols))
    return found


def _faces_array(program: Program) -> Any:
    """Elements of either array of what crosses between tiles."""
    assert isinstance(program.config, CudaConfig)
    return array_elements(program.case.stencil, program.config, _DOMAIN)


def _types(program: Program) -> Iterator[CellType]:
    if not (program.config.indirect or program.config.flags == "memory"):
        return  # no word of theirs is read
    words = words_of(program.case, program.config)
    for c, field in words.conditions:
        yield CellType(kind=c.kind, face=SIDES[c.face], patch=c.patch, **field._asdict())
    for patch, field in words.walls:
        yield CellType(kind="moving", face="", patch=patch, **field._asdict())


def launch_geometry(program: Program, launch: Launch) -> LaunchGeometry:
    """A launch with its grid as formula and for the program's domain."""
    return LaunchGeometry(
        entry=launch.entry,
        arguments=launch.arguments,
        block=launch.block,
        covers=launch.covers,
        over=launch.over,
        grid_formula=_grid_formula(launch, program.frame),
        grid=program.grid(launch, program.case.domain),
        shared_bytes=launch.shared_bytes,
        mode=launch.mode,
        ends=launch.ends,
    )


def describe_storage(program: Program) -> Storage:
    """Where a state lies, as formulas in C and tables: each f_i(x, t), or each moment."""
    config, stencil, frame = program.config, program.case.stencil, program.frame
    extents = ("nodes", "1", "1") if config.indirect else tuple(map(_plain, frame.extents(_DOMAIN)[:3]))
    common = Storage(
        dtype=config.stored.dtype,
        scale=config.unit,
        index="",
        extents=(f"NX = {extents[0]}", f"NY = {extents[1]}", f"NZ = {extents[2]}"),
        origin=(0, 0, 0) if config.indirect else frame.origin,
        ghost=(False, False, False) if config.indirect else frame.ghost,
        velocities=stencil.velocities,
        weights=tuple(map(str, stencil.weights)),
        locations=(),
        wall_term="none",
        blocks=frame.blocks,
        links=_links(program) if config.indirect else None,
    )
    return _WITH_PLACES[config.kept.name](common, program)


def _with_populations(common: Storage, program: Program) -> Storage:
    config, stencil = program.config, program.case.stencil
    phases = [config.propagation.phase(stencil, parity) for parity in range(config.propagation.period)]
    x, y, z, q = (Traced(name) for name in "XYZQ")
    return replace(
        common,
        index=_plain(_index(program, x, y, z, q)),
        locations=tuple(tuple(_location(a, config.implicit) for a in phase.accesses) for phase in phases),
        wall_term=phases[0].wall_term,
    )


def _index(program: Program, x: Traced, y: Traced, z: Traced, q: Traced) -> Any:
    """The element of slot q; where several lie together, the last ones may be fewer."""
    config, symbols = program.config, _symbols(program)
    if isinstance(config, CudaConfig) and config.marches:
        return value_index(q, x, y, z, symbols, config, program.case.stencil)
    return index(config.memory, symbols, x, y, z, q)


def _with_moments(common: Storage, program: Program) -> Storage:
    config, stencil, symbols = program.config, program.case.stencil, _symbols(program)
    x, y, z = (Traced(name) for name in "xyz")
    if isinstance(config, CpuConfig):
        places = [kept_index(k, x, y, z, symbols, config) for k in range(symbols.q)]
    else:
        assert isinstance(config, CudaConfig)
        places = [value_index(k, x, y, z, symbols, config, stencil) for k in range(symbols.q)]
    moments = tuple(Moment(order=n, index=_plain(at)) for n, at in zip(orders(stencil), places, strict=True))
    return replace(common, moments=moments)


_WITH_PLACES = {"populations": _with_populations, "moments": _with_moments}


def _symbols(program: Program) -> Extents:
    return Extents(Traced("NX"), Traced("NY"), Traced("NZ"), program.frame.q)


def _links(program: Program) -> Links:
    from lbmtune.catalogue.sparse.nodes import counts, granule

    rows = listed_rows(program.case, program.config)
    _, sites, count = counts(program.case, program.config)
    return Links(
        order=program.config.order,
        granule=granule(program.config),
        sites=sites,
        nodes=count,
        pointers=tuple(LinkRow(open=p.open, cut=p.cut, link=p.link) for p in rows.kept),
        masked=rows.masked,
        rows=rows.rows,
        chased=rows.chased,
    )


def _location(access: Access, implicit: bool) -> Location:
    read, cut = access.read, access.read if implicit else access.cut_read
    return Location(
        direction=access.direction, slot=read.slot, offset=read.offset, cut_slot=cut.slot, cut_offset=cut.offset
    )


def _buffers(program: Program) -> tuple[Buffer, ...]:
    elements = program.buffer_elements(program.case.domain)
    stored = program.config.stored
    size = elements * stored.bytes
    symbols = Extents(Traced("NX"), Traced("NY"), Traced("NZ"), program.frame.q)
    formula = _plain(program.config.memory.length(symbols))
    if isinstance(program.config, CudaConfig) and program.config.by_faces:
        formula += f" + 2 * {_faces_array(program)}"
    copies = (
        Buffer(name=name, dtype=stored.dtype, elements=elements, elements_formula=formula, bytes=size)
        for name in program.buffers()
    )
    cells = program.case.sites
    words = (
        Buffer(name=name, dtype="uint32", elements=cells, elements_formula="nx * ny * nz", bytes=cells * WORD_BYTES)
        for name in program.tables()
    )
    links = (_list_buffer(program),) if program.config.indirect else ()
    return (*copies, *words, *links, *_macroscopics(program), *_barrier(program), *_faces(program), *_rings(program))


def _barrier(program: Program) -> tuple[Buffer, ...]:
    """Words by which blocks meet, where they do."""
    words = program.barrier_words(program.case.domain)
    if not words:
        return ()
    ((launch,),) = program.period
    blocks = " * ".join(f"({along})" for along in _grid_formula(launch, program.frame))
    formula = str(words) if words == COUNTS else f"{APART} * {blocks}"
    size = words * WORD_BYTES
    return (Buffer(name=BARRIER, dtype="uint32", elements=words, elements_formula=formula, bytes=size),)


def _faces(program: Program) -> tuple[Buffer, ...]:
    """What tiles on chip send one another, where that is not the state itself."""
    values, config = program.face_values(program.case.domain), program.config
    if not values:
        return ()
    assert isinstance(config, CudaConfig)
    formula, size = _plain(face_elements(program.case.stencil, config, _DOMAIN)), values * config.computed.bytes
    return (Buffer(name=SENT_SUMS, dtype=config.computed.dtype, elements=values, elements_formula=formula, bytes=size),)


def _rings(program: Program) -> tuple[Buffer, ...]:
    """What threads of a CPU keep from row to row, where they do."""
    values, real = program.ring_values, program.config.computed
    size = values * real.bytes
    found = Buffer(name=RINGS, dtype=real.dtype, elements=values, elements_formula=str(values), bytes=size)
    return (found,) if values else ()


def _list_buffer(program: Program) -> Buffer:
    rows, length = listed_rows(program.case, program.config).rows, "nodes" if program.config.chased else "sites"
    elements = program.list_elements(program.case.domain)
    size = WORD_BYTES * elements
    return Buffer(name=LIST, dtype="uint32", elements=elements, elements_formula=f"{rows} * {length}", bytes=size)


def _macroscopics(program: Program) -> tuple[Buffer, ...]:
    """Density and the components of velocity, one array after another, where every step writes them."""
    size = macroscopic_bytes(program.config) * program.case.sites
    real, elements = program.config.computed, MACROSCOPIC_FIELDS * program.case.sites
    formula = f"{MACROSCOPIC_FIELDS} * nx * ny * nz"
    found = Buffer(name=MACROSCOPICS, dtype=real.dtype, elements=elements, elements_formula=formula, bytes=size)
    return (found,) if size else ()


def _arguments(program: Program) -> dict[str, Argument]:
    used = {name for step in program.period for launch in step for name in launch.arguments}
    real = program.config.computed.dtype
    return {
        name: Argument(type="int32" if isinstance(value, int) else real, value=value)
        for name, value in scalars(program.case, program.config, program.case.domain).items()
        if name in used
    }


def _grid_formula(launch: Launch, frame: StorageFrame) -> tuple[str, str, str]:
    totals: tuple[str, str, str] = ("nx", "ny", "nz")
    if launch.over == "sites":
        totals = ("sites", "1", "1")
    if launch.over == "shell":
        outer = " * ".join(f"({n} + 2)" if ghost else n for n, ghost in zip(totals, frame.ghost, strict=True))
        totals = (f"({outer} - nx * ny * nz)", "1", "1")
    x, y, z = (_blocks(*one) for one in zip(totals, launch.covers, launch.ends, strict=True))
    return x, y, z


def _blocks(total: str, covered: int, more: int) -> str:
    if more:
        return f"{total} > {more} ? ({total} + {covered - 1 - more}) / {covered} : 1"
    return total if covered == 1 or total == "1" else f"({total} + {covered - 1}) / {covered}"


def _plain(value: Any) -> str:
    """The text without a pair of brackets around the whole."""
    text = str(value)
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth and place < len(text) - 1:
            return text
    return text[1:-1]
