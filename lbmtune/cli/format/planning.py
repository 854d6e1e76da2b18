"""Print a plan of memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lbmtune.catalogue.limits import extents
from lbmtune.cli.format import output
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_bytes, format_mlups

if TYPE_CHECKING:
    from lbmtune.api.planning import Cells, MemoryPlan, PlannedKernel

_MISSING = "-"


def print_plan(found: MemoryPlan, case: str) -> None:
    """Print a table of kinds of kernels, and the kinds that are illegal with the reason. case: in words."""
    domain = _domain(found.case.domain)
    square = found.case.stencil.dimensions == 2
    columns = {
        "family": "family",
        "scheme": "scheme",
        "storage": "storage",
        "bytes": "bytes per cell>",
        "cube": f"largest {'square' if square else 'cube'}>",
        "shaped": "in proportion>",
        "devices": "devices needed>",
        "parts": "parts>",
        "mlups": f"{found.case.speed_unit} each>",
    }
    if found.machine is None:
        del columns["mlups"]
    if all(one.shaped == one.cube for one in found.kernels):
        del columns["shaped"]
    rows = [dict(_cells(one)) for one in found.kernels]
    on = f" ({found.machine})" if found.machine else ""
    title = f"{_held(found)}{on}: largest domains, and devices needed for {domain}\n{case}"
    shown = output.table(title, tuple(columns.values()), ([row[name] for name in columns] for row in rows))
    output.stdout().print(shown, "")
    if found.illegal:
        output.stdout().print(output.table("not for this case", ("kinds", "reason"), _by_reason(found.illegal)))


def _by_reason(illegal: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each reason once, with the first of its kinds and the number of others."""
    for reason in dict.fromkeys(illegal.values()):
        first, *others = (name for name, why in illegal.items() if why == reason)
        yield f"{first}, and {len(others)} more" if others else first, reason


def _cells(one: PlannedKernel) -> Iterator[tuple[str, str]]:
    config = one.config
    yield "family", config.family
    yield "scheme", kind_of(config).pattern
    yield "storage", config.storage
    yield "bytes", f"{one.bytes_per_cell:.4g}"
    yield "cube", _domain(one.cube)
    yield "shaped", _domain(one.shaped)
    yield "devices", _MISSING if one.devices is None else f"{one.devices:,}"
    yield "parts", _domain(one.parts)
    yield "mlups", _MISSING if one.mlups is None else format_mlups(one.mlups)


def _domain(cells: Cells | None) -> str:
    """Return a domain as '512x512x512'; a dash for none."""
    return extents(cells) if cells else _MISSING


def _held(found: MemoryPlan) -> str:
    """Return the memory of a plan in words."""
    each = format_bytes(found.memory_bytes)
    return each if found.devices == 1 else f"{found.devices:,} devices of {each}"
