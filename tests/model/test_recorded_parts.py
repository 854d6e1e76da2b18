"""Predictions of two GPUs beside what was measured on two H100, and the page that shows both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any, NamedTuple

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.flows import box
from lbmtune.decomposition.coupling import Coupling, edge_planes
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.model.exchange import Period, measured_over_predicted, period
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.messages import known_transport
from lbmtune.records.comparison.statistics import paired_ratio
from tests.support.paths import RECORDED, ROOT

FOLDER = RECORDED / "nvidia-h100"
PAGE = ROOT / "docs" / "lab" / "several-devices.md"


class Row(NamedTuple):
    """A coupling of a kernel: measured and predicted, if links say how long its messages take."""

    group: dict[str, Any]
    coupling: dict[str, Any]
    mlups: float
    efficiency: float
    predicted: float | None
    period: Period | None

    @property
    def name(self) -> str:
        return f"{self.group['kind']} {self.group['name']} {self.coupling}"

    @property
    def cells(self) -> list[str]:
        """The cells of its row of the page."""
        exchange = self.coupling["exchange_s"]
        return [
            self.group["kind"],
            self.group["name"],
            extents(self.group["domain"]),
            self.coupling["transport"],
            self.coupling["overlap"],
            f"{self.mlups:,.0f}",
            f"{self.efficiency:.3f}",
            f"{self.predicted:.3f}" if self.predicted else "",
            f"{1e6 * exchange:.0f}" if exchange else "",
            f"{1e6 * self.period.exchange_s:.0f}" if self.period else "",
        ]


@cache
def rows() -> tuple[Row, ...]:
    """Graphs with edges of the usual thickness."""
    return tuple(_rows())


def _rows() -> Iterator[Row]:
    machine = read_machine(FOLDER / "machine.toml")
    assert machine.links
    for group in json.loads((FOLDER / "parts.json").read_text())["groups"]:
        x, y, z = group["domain"]
        case, one = box("d3q19", group["collision"], (x, y, z), 1.6), from_flat(group["config"])
        whole = replace(case, domain=(x, y, 2 * z)) if group["kind"] == "weak" else case
        alone_s = median(group["alone_s"])
        launch_s = alone_s * one.fused_steps / group["steps"]
        own = measured_over_predicted(decomposed(case, one, parse_cut("1x1x1")), machine, launch_s)
        found, share = decomposed(whole, one, parse_cut(group["cut"])), whole.sites / case.sites / 2
        for coupling in group["couplings"]:
            if coupling["edge_planes"] or coupling["launching"] != "graph":
                continue
            expected = None
            if known_transport(machine.links, coupling["transport"]):
                expected = period(found, machine, _as_recorded(coupling, found), own=own)
            efficiency = share * paired_ratio(group["alone_s"], coupling["period_s"]).median
            mlups = whole.sites * group["steps"] / median(coupling["period_s"]) / 1e6
            predicted = share * alone_s / expected.total_s if expected else None
            yield Row(group, coupling, mlups, efficiency, predicted, expected)


def _as_recorded(coupling: dict[str, Any], found: Decomposition) -> Coupling:
    """The coupling whose launches are those of the record: blocks of the interior were those of the kernel then."""
    transport, overlap = coupling["transport"], coupling["overlap"]
    edge = 0 if overlap == "none" else edge_planes(found, found.parts[0], Coupling())
    return Coupling(transport, overlap, edge)


def test_efficiency_is_predicted_within_a_few_percent() -> None:
    errors = {row.name: row.predicted / row.efficiency - 1 for row in rows() if row.predicted}
    assert {row.coupling["transport"] for row in rows() if not row.predicted} == {"host"}
    assert len(errors) > 25
    assert median(map(abs, errors.values())) < 0.012
    assert max(map(abs, errors.values())) < 0.055, errors


def test_an_exchange_by_a_kernel_takes_what_links_say() -> None:
    """Nothing of it is fitted: bytes, the curve of messages, two waits.

    With overlap each exchange was recorded with a wait for launches that had ended, which takes up to 2 us.
    """
    packed = [row for row in rows() if row.coupling["transport"] == "pack" and row.coupling["exchange_s"]]
    more = {row.name: 0.0 if row.coupling["overlap"] == "none" else 2e-6 for row in packed}
    ratios = {
        row.name: row.period.exchange_s / (row.coupling["exchange_s"] - more[row.name]) for row in packed if row.period
    }
    assert len(ratios) > 12
    assert all(0.88 < ratio < 1.02 for ratio in ratios.values()), ratios


def test_the_page_shows_what_is_recorded() -> None:
    text = PAGE.read_text()
    shown = re.findall(r"^\| (?:weak|strong) \|.*\|$", text, re.MULTILINE)
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in shown] == [row.cells for row in rows()]
    proofs = json.loads((FOLDER / "parts.json").read_text())["proofs"]
    assert f"{proofs['equal_bit_for_bit']} of {proofs['compared']} comparisons" in text
