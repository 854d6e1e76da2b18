"""Print a plan of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lbmtune.catalogue.limits import extents
from lbmtune.cli.format import output
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from lbmtune.api.predicted.planning import Cells, MemoryPlan, PlannedKernel

_MISSING = "-"
_COMMON = ("storage", "parts>")
"""Columns that are left out if all their cells are the same."""


def print_plan(found: MemoryPlan, case: str) -> None:
    """Print a table of kinds of kernels, and the kinds that are illegal with the reason. case: in words.

    What all rows have in common has no column.
    """
    rows = [dict(_cells(one, found)) for one in found.kernels]
    storages = sorted({row["storage"] for row in rows})
    columns = [name for name in rows[0] if len({row[name] for row in rows}) > 1 or name not in _COMMON]
    if all(one.shaped == one.cube for one in found.kernels):
        columns.remove("in proportion>")
    on = "".join(f", {name}" for name in (found.machine, storages[0] if len(storages) == 1 else None) if name)
    domain = _domain(found.case.domain)
    title = f"{_held(found)}{on}: largest domains, and devices needed for {domain}\n{case}"
    output.stdout().print(output.table(title, columns, ([row[name] for name in columns] for row in rows)), "")
    if found.illegal:
        output.stdout().print(output.table("not for this case", ("kinds", "reason"), _by_reason(found.illegal)))


def _by_reason(illegal: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each reason once, with the first of its kinds and the number of others."""
    for reason in dict.fromkeys(illegal.values()):
        first, *others = (name for name, why in illegal.items() if why == reason)
        yield f"{first}, and {len(others)} more" if others else first, reason


def _cells(one: PlannedKernel, found: MemoryPlan) -> Iterator[tuple[str, str]]:
    """Yield columns and cells."""
    config, dimensions = one.config, found.case.stencil.dimensions
    yield "family", config.family
    yield "scheme", kind_of(config).pattern
    yield "storage", config.storage
    yield "B/cell>", f"{one.bytes_per_cell:.4g}"
    yield "square>" if dimensions == 2 else "cube>", f"{one.cube[0]}^{dimensions}" if one.cube else _MISSING
    yield "in proportion>", _domain(one.shaped)
    yield "devices>", _MISSING if one.devices is None else f"{one.devices:,}"
    yield "parts>", _domain(one.parts)
    if found.machine:
        yield f"{found.case.speed_unit} each>", _MISSING if one.mlups is None else format_mlups(one.mlups)


def _domain(cells: Cells | None) -> str:
    """Return a domain as '512x512x512'; a dash for none."""
    return extents(cells) if cells else _MISSING


def _held(found: MemoryPlan) -> str:
    """Return the memory of a plan in words."""
    each = format_bytes(found.memory_bytes)
    return each if found.devices == 1 else f"{found.devices:,} devices of {each}"
