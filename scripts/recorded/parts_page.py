"""Write a page of the recorded couplings of two GPUs: timelines of a period, weak and strong scaling.

    python -m scripts.recorded.parts_page [FILE]      default: reports/nvidia-h100/parts.html

Points are measured on two GPUs of one host beside one of them; lines are what the model predicts for up to eight.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from lbmtune.api.machines.shipped import named_machine
from lbmtune.api.predicted.parallel import scaling
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.decomposition.coupling import Coupling, bands
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import Decomposition, decomposed
from lbmtune.records.comparison.statistics import Interval, paired_ratio
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.html import Panel, panel
from lbmtune.report.parts import Timed, parts_page, scaling_efficiency_figure, timeline_figure
from scripts.paths import RECORDED, ROOT

FILE, PAGE = RECORDED / "nvidia-h100" / "parts.json", ROOT / "reports" / "nvidia-h100" / "parts.html"
MACHINE, DEVICES, PREDICTED = "h100", 2, 8
_RATE = 1.6
_KNOBS = ("transport", "overlap", "edge_planes", "launching")


class Group(NamedTuple):
    """A kernel on a domain: its case on one device and on both, and the couplings that were timed."""

    name: str
    kind: str
    alone: Case
    config: KernelConfig
    found: Decomposition
    alone_s: Sequence[float]
    couplings: Sequence[dict[str, Any]]

    def efficiency(self, one: dict[str, Any]) -> Interval:
        """Return the speed of both over twice that of one, by turns."""
        share = self.found.case.sites / self.alone.sites / DEVICES
        return Interval(*(share * value for value in paired_ratio(self.alone_s, one["period_s"])))

    @property
    def best(self) -> dict[str, Any]:
        """Return the fastest coupling."""
        return min(self.couplings, key=lambda one: median(one["period_s"]))


def groups(recorded: dict[str, Any]) -> Iterator[Group]:
    """Yield the groups of a recorded file."""
    for one in recorded["groups"]:
        x, y, z = one["domain"]
        alone, config, cut = box("d3q19", one["collision"], (x, y, z), _RATE), from_flat(one["config"]), one["cut"]
        weak = one["kind"] == "weak"
        whole = replace(alone, domain=(x, y, DEVICES * z)) if weak else alone
        found = decomposed(whole, config, parse_cut(cut), one["steps"] if config.fused_steps > 1 else None)
        name = f"{one['name']} {extents(one['domain'])}"
        yield Group(name, one["kind"], alone, config, found, one["alone_s"], one["couplings"])


def timed(group: Group, one: dict[str, Any]) -> Timed:
    """Return the times of a coupling with the share of the planes that its edges have."""
    part = group.found.parts[0]
    coupling = Coupling(**{name: one[name] for name in _KNOBS if name in one})
    edges = sum(map(len, bands(group.found, part, coupling).edges))
    return Timed(
        overlap=one["overlap"],
        edges=edges / part.box.extents[2],
        launches_s=one["launches_s"],
        exchange_s=one["exchange_s"],
        period_s=median(one["period_s"]),
    )


def panels(recorded: dict[str, Any]) -> Iterator[Panel]:
    """Yield the figures: scaling of each kind, then a timeline for each kernel whose exchange was measured."""
    found = list(groups(recorded))
    for kind in ("weak", "strong"):
        mine = {group.name: group for group in found if group.kind == kind}
        predicted = {name: _predicted(group, kind) for name, group in mine.items()}
        measured = {name: (DEVICES, group.efficiency(group.best)) for name, group in mine.items()}
        caption = f"Points: the fastest coupling on {DEVICES} GPUs, with 95 % intervals. Lines: predicted."
        figure = scaling_efficiency_figure(predicted, measured)
        yield replace(panel(f"{kind}-scaling", f"{kind.capitalize()} scaling", caption, figure), wide=True)
    for number, group in enumerate(found):
        bars = {
            f"{one['overlap']}, {one['transport']}": timed(group, one)
            for one in group.couplings
            if one.get("exchange_s") and not one.get("edge_planes") and one.get("launching", "graph") == "graph"
        }
        if bars:
            caption = "Launches and exchange were timed each without the other; edges have the share of their planes."
            yield panel(f"timeline-{number}", f"{group.kind} {group.name}: one period", caption, timeline_figure(bars))


def _predicted(group: Group, kind: str) -> list[tuple[int, float]]:
    found = scaling(group.alone, group.config, named_machine(MACHINE), PREDICTED, kind=kind)
    return [(one.devices, one.efficiency) for one in found.points]


def page(recorded: dict[str, Any]) -> str:
    """Return the page of a recorded file."""
    title = f"{recorded['devices']} x {recorded['device']}, {recorded['link']}, {recorded['date']}"
    proofs = recorded["proofs"]
    headline = f"{proofs['compared']} proofs, {proofs['equal_bit_for_bit']} equal bit for bit"
    text = f"Recorded: {recorded['what']}. Predictions are those of the machine {MACHINE}."
    return parts_page(title, headline, text, list(panels(recorded)))


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=PAGE)
    given = parser.parse_args()
    write_atomically(given.file, page(json.loads(FILE.read_text(encoding="utf-8"))).encode())
    print(given.file)


if __name__ == "__main__":
    main()
