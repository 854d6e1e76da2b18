"""The CPU program of the direct family: each pass of a scheme goes once over all rows of the box."""

from __future__ import annotations

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.direct import slabs
from lbmtune.codegen.cpu.direct.blocks import behind, home_before, home_body, kept_rows, ring_before, ring_copies
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
from lbmtune.codegen.passes import Pass, passes
from lbmtune.codegen.program import Launch, Program, period_of
from lbmtune.codegen.skeleton import filled, indented


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
    """Return the launch of a pass, with the refresh of rings before it and the pass over faces after it."""
    step = Launch(one.entry, launch_arguments(case, config, one))
    rings = (Launch(one.refresh("read"), (*one.buffers, *DOMAIN)),) if one.phase.blockwise else ()
    faces = (Launch(_faces_name(one), (*one.buffers, *DOMAIN)),) if one.phase.ordered else ()
    return (*rings, step, *faces)


def _loops(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Return the loop over the rows: a parallel one, over blocks with rings, or over slabs in order."""
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
    """Return the fields of a skeleton that name a pass's kernel and row function and their parameters."""
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
    before, copies = ring_before(row.streams), ring_copies(row.streams, row.lanes)
    fields = {"row": name, "arguments": ", ".join(arguments), "signature": signature(config, arguments)}
    ring = filled("direct/ring", **fields, before=indented(before, 1), copies=indented(copies, 1))
    return [ring, filled("direct/loop_zy", entry=one.refresh("read"), **fields, **parallel_loop(config), fence="")]


def _blocks(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    loop = filled(
        "direct/blocks",
        **_fields(case, config, one),
        threads=config.threads,
        tile_y=config.tile_y,
        tile_z=config.tile_z,
        lanes=row.lanes,
        behind=behind(row.streams),
        kept=kept_rows(row.streams),
        before=indented(home_before(row.streams), 1),
        body=indented(home_body(row), 2),
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
