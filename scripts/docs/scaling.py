"""The page of predicted scaling on eight H200: kernels of recorded sets, by the model, with what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lbmtune.api.machines.shipped import named_machine
from lbmtune.api.predicted.parallel import ASSUMED, Scaling, ScalingPoint, scaling
from lbmtune.catalogue.limits import extents
from lbmtune.records.best_json.document import Best, read_best
from scripts.paths import RECORDED

MACHINE, DEVICES = "h200", 8
_SETS = "nvidia-h200"


class Asked(NamedTuple):
    """A kernel of a recorded set on a domain: of each device in weak scaling, of all in strong scaling."""

    title: str
    recorded: str
    weak: tuple[int, int, int]
    strong: tuple[int, int, int]


KERNELS = (
    Asked("one step, fp32", "d3q19-box-fp32", (512, 512, 512), (512, 512, 512)),
    Asked("one step, fp16s", "d3q19-box-fp16s", (512, 512, 512), (512, 512, 512)),
    Asked("moments, three steps a launch, fp32", "d3q19-box-fast-384-fp32", (384, 384, 384), (384, 384, 1536)),
)


def predicted(one: Asked, kind: str) -> Scaling:
    """Return the predicted scaling of a kernel."""
    best: Best = read_best(RECORDED / _SETS / one.recorded / "best.json")
    case = replace(best.case, domain=one.weak if kind == "weak" else one.strong)
    alone = best.expected.mlups if case == best.case else None
    machine = named_machine(MACHINE)
    return scaling(case, best.config, machine, DEVICES, kind=kind, resources=best.resources, alone_mlups=alone)


def scaling_lines() -> list[str]:
    """Return the lines of the page."""
    links = predicted(KERNELS[0], "weak")
    return [
        f"# {DEVICES} H200: predicted scaling",
        "",
        f"Predictions for up to {DEVICES} H200 of one host, of kernels that were measured on one. Nothing here was",
        "measured on several H200. [Two H100](../lab/several-devices.md) were measured beside their predictions.",
        "",
        "    lbmtune predict best.json --machine h200 --devices 8 --weak --output scaling.html",
        "",
        "prints such a table for any kernel and draws it. The columns are those of [several",
        "devices](several-devices.md#predict-scaling).",
        "",
        "## Assumptions",
        "",
        *(f"- {one};" for one in ASSUMED),
        f"- links are {links.links}: {links.assumed};",
        "- a kernel takes the registers that were recorded on one H200;",
        "- one device is as fast as it was recorded, if it was on the same domain; launches follow it.",
        *(line for kind in ("weak", "strong") for line in _of_kind(kind)),
    ]


def _of_kind(kind: str) -> Iterator[str]:
    yield from ("", f"## {kind.capitalize()} scaling", "")
    yield "Each device has the domain of the first row." if kind == "weak" else "All devices share the domain."
    for one in KERNELS:
        found = predicted(one, kind)
        yield from ("", f"### {one.title}, {extents(one.weak if kind == 'weak' else one.strong)}", "")
        yield f"The kernel of `{_SETS}/{one.recorded}`:"
        yield from ("", *_table(found.points))


def _table(points: Sequence[ScalingPoint]) -> Iterator[str]:
    columns = ("devices", "cut", "domain", "MLUPS", "efficiency", "overlap", "exchange, us", "shows, us", "shows")
    for cells in (columns, ("---",) * len(columns), *map(_cells, points)):
        yield f"| {' | '.join(cells)} |"


def _cells(one: ScalingPoint) -> tuple[str, ...]:
    alone = not one.period.exchange_s
    return (
        str(one.devices),
        one.cut,
        extents(one.domain),
        f"{one.mlups:,.0f}",
        f"{one.efficiency:.1%}",
        "-" if alone else f"{one.period.overlap}, {one.transport}",
        f"{1e6 * one.period.exchange_s:.1f}",
        f"{1e6 * one.period.shown_s:.1f}",
        "-" if alone else f"{one.shown_share:.0%}",
    )
