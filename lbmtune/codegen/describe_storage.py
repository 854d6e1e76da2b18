"""The place of a state in memory, as formulas in C and tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lbmtune.catalogue.moments.basis import orders
from lbmtune.catalogue.schemes.scheme import Access
from lbmtune.catalogue.sparse.index_list import listed_rows
from lbmtune.catalogue.storage_frame import Domain
from lbmtune.codegen.describe import symbolic_extents
from lbmtune.codegen.program import LIST, Program
from lbmtune.codegen.trace import Traced, plain
from lbmtune.records.storage_format import LinkRow, Links, Location, Moment, Storage

_DOMAIN = Domain(Traced("nx"), Traced("ny"), Traced("nz"))


def describe_storage(program: Program) -> Storage:
    """Return the place of each f_i(x, t), or of each moment."""
    config, stencil, frame = program.config, program.case.stencil, program.frame
    listed = LIST in program.arguments
    extents = ("nodes", "1", "1") if listed else tuple(map(plain, frame.extents(_DOMAIN)[:3]))
    common = Storage(
        dtype=config.stored.dtype,
        scale=config.unit,
        index="",
        extents=(f"NX = {extents[0]}", f"NY = {extents[1]}", f"NZ = {extents[2]}"),
        origin=(0, 0, 0) if listed else frame.origin,
        ghost=(False, False, False) if listed else frame.ghost,
        velocities=stencil.velocities,
        weights=tuple(map(str, stencil.weights)),
        locations=(),
        wall_term="none",
        blocks=frame.blocks,
        links=_links(program) if listed else None,
    )
    return _WITH_PLACES[config.kept.name](common, program)


def _with_populations(common: Storage, program: Program) -> Storage:
    config, stencil = program.config, program.case.stencil
    phases = [config.propagation.phase(stencil, parity) for parity in range(config.propagation.period)]
    x, y, z, q = map(Traced, "XYZQ")
    return replace(
        common,
        index=plain(config.value_index(q, x, y, z, symbolic_extents(program), stencil)),
        locations=tuple(tuple(_location(a, config.implicit) for a in phase.accesses) for phase in phases),
        wall_term=phases[0].wall_term,
    )


def _with_moments(common: Storage, program: Program) -> Storage:
    stencil, symbols = program.case.stencil, symbolic_extents(program)
    x, y, z = map(Traced, "xyz")
    places = [program.config.value_index(k, x, y, z, symbols, stencil) for k in range(symbols.q)]
    moments = tuple(Moment(order=n, index=plain(at)) for n, at in zip(orders(stencil), places, strict=True))
    return replace(common, moments=moments)


_WITH_PLACES = {"populations": _with_populations, "moments": _with_moments}


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
