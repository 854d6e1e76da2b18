"""The CPU program of the direct family: each pass of a scheme goes once over all rows of the box."""

from collections.abc import Iterable
from itertools import groupby

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Access, reach
from lbmtune.codegen.cpu.direct import slabs
from lbmtune.codegen.cpu.direct.ghost_rows import ghost_row
from lbmtune.codegen.cpu.direct.row_kernel import RowKernel, module_names, support_modules
from lbmtune.codegen.cpu.direct.rows import KEPT, Row
from lbmtune.codegen.cpu.shared.expressions import Constants
from lbmtune.codegen.cpu.shared.module import (
    DOMAIN,
    launch_arguments,
    module,
    parallel_loop,
    parameter_names,
    row_name,
    signature,
)
from lbmtune.codegen.cpu.shared.streams import Streams
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import Launch, Program, period_of
from lbmtune.codegen.skeleton import block, filled, indented


def render(case: Case, config: CpuConfig) -> Program:
    """Return the program of a legal configuration of the direct family."""
    constants = Constants()
    steps = [_step(case, config, one, constants) for one in passes(config, case.stencil)]
    period = period_of(config, case.stencil, lambda one: _launches(case, config, one))
    support = support_modules(case, config)
    names = module_names(config, support, streaming=bool(config.streaming_stores))
    return module(case, config, constants, steps, period, names, support)


def _step(case: Case, config: CpuConfig, one: Pass, constants: Constants) -> str:
    positions = (KEPT, "line") if one.phase.blockwise else ("first",) if one.phase.ordered else ()
    kernel = RowKernel(case, config, one, constants, positions, streaming=bool(config.streaming_stores))
    return f"{kernel.text()}\n\n\n{_loops(case, config, one, kernel.row)}"


def _launches(case: Case, config: CpuConfig, one: Pass) -> tuple[Launch, ...]:
    step = Launch(one.entry, launch_arguments(case, config, one))
    rings = (Launch(one.refresh("read"), (*one.buffers, *DOMAIN)),) if one.phase.blockwise else ()
    faces = (Launch(_faces_name(one), (*one.buffers, *DOMAIN)),) if one.phase.ordered else ()
    return (*rings, step, *faces)


def _loops(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    if one.phase.blockwise:
        return _blocks(case, config, one, row)
    return _slabs(case, config, one, row) if one.phase.ordered else _loop(case, config, one)


def _loop(case: Case, config: CpuConfig, one: Pass) -> str:
    return filled(
        f"direct/loop_{config.loop}",
        **_fields(case, config, one),
        tile_y=config.tile_y,
        tile_z=config.tile_z,
        fence=indented(["simd.fence()"] if config.streaming_stores else [], 2),
    ).rstrip()


def _fields(case: Case, config: CpuConfig, one: Pass) -> dict[str, str]:
    names = parameter_names(case, config, one.phase)
    return {
        "entry": one.entry,
        "row": row_name(one),
        "arguments": ", ".join(names),
        "signature": signature(config, names),
        **parallel_loop(config),
    }


def _rings(config: CpuConfig, one: Pass, row: Row) -> list[str]:
    name, arguments = f"ring_{row_name(one)}", ("field", *DOMAIN)
    streams = row.streams
    before = [*streams.extent_lines(), *streams.neighbour_lines(), *streams.image_lines()]
    fields = {"row": name, "arguments": ", ".join(arguments), "signature": signature(config, arguments)}
    ring = filled(
        "direct/ring", **fields, before=indented(before, 1), copies=indented(_ring_copies(streams, row.lanes), 1)
    )
    return [ring, filled("direct/loop_zy", entry=one.refresh("read"), **fields, **parallel_loop(config), fence="")]


def _blocks(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    # One thread updates a block, row after row. An updated row is kept until no other row of the block reads what it
    # replaces, that is, until the last row that its cells reach has been updated
    loop = filled(
        "direct/blocks",
        **_fields(case, config, one),
        threads=config.threads,
        tile_y=config.tile_y,
        tile_z=config.tile_z,
        lanes=row.lanes,
        behind=_behind(row.streams),
        kept=_kept_rows(row.streams),
        before=indented(_home_before(row.streams), 1),
        body=indented(_home_body(row), 2),
    )
    return "\n\n\n".join(text.rstrip() for text in (*_rings(config, one, row), loop))


def _slabs(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Return the loop over slabs of planes (in two dimensions, of rows), and the pass over their faces."""
    flat = case.stencil.dimensions == 2
    return filled(
        "direct/slabs",
        **_fields(case, config, one),
        threads=config.threads,
        layers="ny" if flat else "nz",
        rows="1" if flat else "ny",
        faces=indented(slabs.faces(row.streams, ghost_row), 1),
        faces_entry=_faces_name(one),
        faces_signature=signature(config, ("field", *DOMAIN)),
    ).rstrip()


def _faces_name(one: Pass) -> str:
    return f"faces_{one.entry.removeprefix('step_')}"


def _behind(streams: Streams) -> str:
    """Return the rows of a block that are updated between a row and its copy to its place."""
    rows, planes = reach(streams.phase)
    return f"{rows} + {planes} * rows_y" if planes else str(rows)


def _kept_rows(streams: Streams) -> int:
    """Return the most rows that a thread keeps, summed over all populations."""
    rows, planes = reach(streams.phase)
    return (rows + planes * streams.config.tile_y + 1) * streams.case.stencil.q


def _home_before(streams: Streams) -> list[str]:
    """Return the lines before the loop that copies a row to its place."""
    starts = [f"p{s.name} = {streams.base(s.open)}" for s in streams.writes]
    here = [line for line in streams.neighbour_lines() if "_here =" in line]
    return [*streams.extent_lines(), *here, *starts]


def _home_body(row: Row) -> list[str]:
    """Return the lines inside the loop that copies a row to its place."""
    streams = row.streams
    moves = (f"store(field, p{s.name} + here, load({KEPT}, {row.kept(s)}))" for s in streams.writes)
    return [f"here = {streams.along_x('x')}", *moves]


def _ring_copies(streams: Streams, lanes: int) -> list[str]:
    """Return the copies to the ring of what a row at the rim of its block reads, from the rows that it stands for.

    Populations of cut links are copied, too, and never read.
    """
    crossing = (access for access in streams.phase.accesses if any(access.read.offset[1:]))
    groups = groupby(sorted(crossing, key=_rows), key=_rows)
    return [line for rows, accesses in groups for line in _copied(streams, rows, accesses, lanes)]


def _rows(access: Access) -> tuple[int, int]:
    return access.read.offset[1], access.read.offset[2]


def _copied(streams: Streams, rows: tuple[int, int], accesses: Iterable[Access], lanes: int) -> list[str]:
    places = {access.direction: access.read for access in accesses}
    starts = [f"to{i}, from{i} = {streams.base(p)}, {streams.base(p, 'image_')}" for i, p in places.items()]
    moves = [f"store(field, to{i} + here, load(field, from{i} + here))" for i in places]
    loop = block(f"for x in range(0, nx, {lanes}):", [f"here = {streams.along_x('x')}", *moves])
    return block(f"if {_at_rim(streams, rows)}:", [*starts, *loop])


def _at_rim(streams: Streams, rows: tuple[int, int]) -> str:
    """Return the condition that the row lies at a rim of its block beyond which it reads."""
    tiles = zip("yz", (streams.config.tile_y, streams.config.tile_z), rows, strict=True)
    return " or ".join(_last(axis, tile, offset) for axis, tile, offset in tiles if offset)


def _last(axis: str, tile: int, offset: int) -> str:
    return f"{axis} % {tile} == 0" if offset < 0 else f"{axis} % {tile} == {tile - 1} or {axis} == n{axis} - 1"
