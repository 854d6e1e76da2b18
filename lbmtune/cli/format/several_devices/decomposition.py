"""Print the parts of a domain on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from lbmtune.catalogue.limits import extents
from lbmtune.cli.format import output
from lbmtune.units import format_bytes

if TYPE_CHECKING:
    from lbmtune.api.predicted.decompositions import Exchange

_MOST_ROWS = 32


def print_parts(found: Exchange, compared: Sequence[Exchange], case: str, config: str) -> None:
    """Print a decomposition: what crosses its faces, its parts, and other cuts it was compared with, if any."""
    of = found.decomposition
    output.print_pairs(
        [
            ("case", case),
            ("configuration", config),
            ("cut", f"{of.cut}, {len(of.parts)} parts"),
            ("halo", _halo(found)),
            ("exchange", _exchange(found)),
            ("bytes per exchange", f"{format_bytes(found.exchange_bytes)}, most of a part {_most(found)}"),
            ("imbalance", f"{found.imbalance:.3f} (most fluid cells of a part over the mean)"),
            ("redundant cells", f"{found.redundant:.2%} of own cells"),
        ]
    )
    console = output.stdout()
    console.print("", _parts(found))
    if len(compared) > 1:
        console.print("", _compared(compared))


def _halo(found: Exchange) -> str:
    of, stencil = found.decomposition, found.decomposition.case.stencil
    layers = f"{of.depth} layer{'s' if of.depth > 1 else ''}"
    if of.crossed == "cells":
        return f"{layers}, all {of.config.kept.values(stencil)} values of a cell"
    most = max((len(face.crossings) for face in of.faces), default=0)
    return f"{layers}, up to {most} of {stencil.q} populations of a cell"


def _exchange(found: Exchange) -> str:
    steps, faces = found.decomposition.steps, len(found.decomposition.faces)
    return f"after {'each step' if steps == 1 else f'{steps} steps'}, through {faces:,} faces (one way each)"


def _most(found: Exchange) -> str:
    return format_bytes(found.most_sent_bytes)


def _parts(found: Exchange) -> Table:
    """Return a table of parts, those with the most fluid cells if there are many."""
    shares = found.shares
    title = "parts"
    if len(shares) > _MOST_ROWS:
        most = sorted(shares, key=lambda one: (-one.fluid_cells, one.number))[:_MOST_ROWS]
        title, shares = f"the {_MOST_ROWS} parts of {len(shares):,} with the most fluid cells", tuple(most)
    boxes = found.decomposition.parts
    rows = (
        (
            one.number,
            one.device,
            boxes[one.number].box,
            extents(one.extents),
            extents(one.stored),
            f"{one.fluid_cells:,}",
            format_bytes(one.sent_bytes),
            one.neighbours,
        )
        for one in shares
    )
    columns = ("part>", "device>", "cells", "extents", "with halo", "fluid cells>", "sends>", "neighbours>")
    return output.table(title, columns, rows)


def _compared(cuts: Sequence[Exchange]) -> Table:
    rows = (
        (
            one.decomposition.cut,
            f"{one.imbalance:.3f}",
            f"{one.redundant:.2%}",
            format_bytes(one.most_sent_bytes),
            format_bytes(one.exchange_bytes),
            max(share.neighbours for share in one.shares),
        )
        for one in cuts
    )
    columns = ("cut", "imbalance>", "redundant>", "most of a part>", "per exchange>", "neighbours>")
    return output.table(f"cuts into {len(cuts[0].decomposition.parts)} parts", columns, rows)
