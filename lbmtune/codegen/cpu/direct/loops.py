"""Loops over the rows of a pass: a parallel loop, blocks with rings, or slabs in order."""

from __future__ import annotations

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cpu.direct import slabs
from lbmtune.codegen.cpu.direct.blocks import behind, home_before, home_body, kept_rows, ring_before, ring_copies
from lbmtune.codegen.cpu.direct.ghost_rows import ghost_row
from lbmtune.codegen.cpu.direct.rows import Row
from lbmtune.codegen.cpu.shared.filling import filled, indented
from lbmtune.codegen.cpu.shared.signatures import DOMAIN, element, parallel_loop, parameter_names, row_name, signature
from lbmtune.codegen.passes import Pass


def loops(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Return the loop over the rows, and second passes over some of them."""
    if one.phase.blockwise:
        return _blocks(case, config, one, row)
    return _slabs(case, config, one, row) if one.phase.ordered else _loop(case, config, one)


def _loop(case: Case, config: CpuConfig, one: Pass) -> str:
    return filled(
        f"direct/loop_{config.loop}",
        **_step(case, config, one),
        tile_y=str(config.tile_y),
        tile_z=str(config.tile_z),
        fence=indented(["simd.fence()"] if config.streaming_stores else [], 2),
    ).rstrip()


def _step(case: Case, config: CpuConfig, one: Pass) -> dict[str, str]:
    """Return the fields of a skeleton that name a pass's kernel and row function and their parameters."""
    arguments = ", ".join(parameter_names(case, config, one.phase))
    return {
        "entry": one.entry,
        "row": row_name(one),
        "arguments": arguments,
        "signature": signature(case, config, one.phase),
        **parallel_loop(config),
    }


def _rings(config: CpuConfig, one: Pass, row: Row) -> list[str]:
    """Return the refresh of the rings of all blocks."""
    name, arguments = f"ring_{row_name(one)}", ", ".join(("field", *DOMAIN))
    before, copies = ring_before(row.streams), ring_copies(row.streams, row.lanes)
    ring = filled("direct/ring", row=name, arguments=arguments, before=indented(before, 1), copies=indented(copies, 1))
    taken = {"entry": one.refresh("read"), "row": name, "arguments": arguments, "signature": _in_place(config)}
    return [ring, filled("direct/loop_zy", **taken, **parallel_loop(config), fence="")]


def _in_place(config: CpuConfig) -> str:
    """Return the signature of a kernel that takes a lattice and its extents only."""
    return ", ".join([f"{element(config)}[::1]", *["int64"] * len(DOMAIN)])


def _blocks(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Return the refresh of the rings and the loop over blocks."""
    loop = filled(
        "direct/blocks",
        **_step(case, config, one),
        threads=str(config.threads),
        tile_y=str(config.tile_y),
        tile_z=str(config.tile_z),
        lanes=str(row.lanes),
        behind=behind(row.streams),
        kept=str(kept_rows(row.streams)),
        before=indented(home_before(row.streams), 1),
        body=indented(home_body(row), 2),
    )
    return "\n\n\n".join(text.rstrip() for text in (*_rings(config, one, row), loop))


def _slabs(case: Case, config: CpuConfig, one: Pass, row: Row) -> str:
    """Return the loop over slabs of planes (in two dimensions, of rows), and the pass over their faces."""
    flat = case.stencil.dimensions == 2
    return filled(
        "direct/slabs",
        **_step(case, config, one),
        threads=str(config.threads),
        layers="ny" if flat else "nz",
        rows="1" if flat else "ny",
        faces=indented(slabs.faces(row.streams, ghost_row), 1),
        faces_entry=faces_name(one),
        faces_signature=_in_place(config),
    ).rstrip()


def faces_name(one: Pass) -> str:
    """Return the entry of the pass over the faces of slabs."""
    return f"faces_{one.entry.removeprefix('step_')}"
