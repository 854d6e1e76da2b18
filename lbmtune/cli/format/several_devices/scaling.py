"""Print predicted weak and strong scaling."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from lbmtune.catalogue.limits import extents
from lbmtune.cli.format import output
from lbmtune.cli.format.description import config_text
from lbmtune.units import format_mlups

if TYPE_CHECKING:
    from lbmtune.api.predicted.parallel import Scaling, ScalingPoint


def print_scaling(found: Scaling, case: str, doubtful: str) -> None:
    """Print what is predicted, on what it rests, and a table for each kind of scaling.

    case: in words; doubtful: why predictions for the machine are not reliable, or ''.
    """
    rows: list[tuple[str, object]] = [
        ("case", case),
        ("configuration", config_text(found.config)),
        ("machine", found.machine),
        ("one device", _alone(found)),
    ]
    if found.links:
        rows += [("links", found.links), ("measured", found.source)]
    from lbmtune.api.predicted.parallel import SWITCH  # here: help loads no model

    assumed = [found.assumed, SWITCH if any(one.devices > 2 for one in found.points) else ""]
    rows += [("assumed", said) for said in assumed if said]
    rows += [("predictions", doubtful)] if doubtful else []
    rows += [("left out", f"{what}: {reason}") for what, reason in found.left_out.items()]
    output.print_pairs(rows)
    for kind in dict.fromkeys(one.kind for one in found.points):
        output.stdout().print("", _table(found, [one for one in found.points if one.kind == kind]))


def _alone(found: Scaling) -> str:
    """Say how fast one device is, and if that was measured."""
    unit, speed = found.case.speed_unit, format_mlups(found.alone)
    if found.alone == found.modelled:
        return f"{speed} {unit} by the model"
    return f"{speed} {unit} as recorded, which all else follows; by the model {format_mlups(found.modelled)}"


def _table(found: Scaling, points: list[ScalingPoint]) -> Table:
    rows = (
        (
            f"{one.devices:,}",
            one.cut,
            extents(one.domain),
            format_mlups(one.mlups),
            f"{one.efficiency:.1%}",
            f"{one.period.overlap}, {one.transport}" if one.period.exchange_s else "-",
            *(_us(seconds) for seconds in (one.period.own_s, one.period.extra_s)),
            *(_us(seconds) for seconds in (one.period.exchange_s, one.period.shown_s)),
            f"{one.shown_share:.0%}" if one.period.exchange_s else "-",
        )
        for one in points
    )
    unit = found.case.speed_unit
    columns = ("devices>", "cut", "domain", f"{unit}>", "efficiency>", "overlap", "own cells us>", "edges, halo us>")
    title = f"{points[0].kind} scaling, times of {points[0].period.steps} time steps"
    return output.table(title, (*columns, "exchange us>", "shows us>", "shows>"), rows)


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}"


def speeds_by_kind(found: Scaling) -> dict[str, list[tuple[int, float, str]]]:
    """Return devices, speed and what is said of it, by kind of scaling."""
    said: dict[str, list[tuple[int, float, str]]] = {}
    for one in found.points:
        text = f"efficiency {one.efficiency:.1%}, cut {one.cut}, overlap {one.period.overlap}, {one.transport}"
        said.setdefault(one.kind, []).append((one.devices, one.mlups, text))
    return said
