"""Write the page of the recorded couplings of several GPUs beside what the model predicts of them.

    python -m scripts.recorded.couplings_page      writes docs/lab/couplings.md

Predictions are made anew by the description of the same card. Of speeds the efficiency is compared: how fast one GPU is
was measured beside each coupling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import median
from typing import Any, NamedTuple

from lbmtune.catalogue.config import from_flat
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.model.exchange import Period, measured_over_predicted, period
from lbmtune.model.machine.description import Machine
from lbmtune.model.machine.toml import read_machine
from lbmtune.model.messages import known_transport
from lbmtune.records.comparison.statistics import paired_ratio
from lbmtune.records.whole_files import write_atomically
from scripts.measurements.couplings.__main__ import with_measured
from scripts.paths import RECORDED, ROOT

FILES = {
    "Two H100": RECORDED / "nvidia-h100" / "couplings.json",
    "Two H200": RECORDED / "nvidia-h200" / "couplings.json",
    "Four H100": RECORDED / "nvidia-h100" / "scaling.json",
}
PAGE = ROOT / "docs" / "lab" / "couplings.md"
FLOWS = {"box": box, "cavity": cavity}
RATE = 1.6
MOST_OF_SPEED, MOST_OF_EXCHANGE = 0.05, 0.10
"""Errors of a prediction that are asked for."""
HEAD = "| kernel | cells | depth | coupling | MLUPS | efficiency | predicted | exchange, us | predicted |"
TEXT = """# Couplings of several GPUs

<!-- Written by scripts/recorded/couplings_page.py from the recorded files; edit the script, not this page. -->

H100 80GB HBM3 and H200 with NVLink 4, of one host each, measured by `python -m scripts.measurements.couplings`: medians
of five turns with one GPU. The files are `couplings.json` and `scaling.json` of the cards in `studies/recorded/`.

Each kernel on parts was compared with one GPU on a small domain. Each coupling was compared with the first one of its
group on the domain that is timed. All are equal bit for bit, but for some of the cavity, which differ by rounding:
its tiles add up what walls return in another order.

- Cells: of each GPU in weak scaling. They are those of all GPUs if `half each`, `512^3` or `1024^3` is in the name.
- Depth: layers of the halo, which are the steps between two exchanges.
- Coupling: `default` is `transport=copy,overlap=edge-priority`.
- Efficiency: the speed of all over as many times that of one GPU, by turns.
- Exchange: between idle GPUs.
- Predicted: by the description of the card, whose links were measured alone, and by how long one GPU took beside them:
  launches of the model take as much longer as they did on one GPU. Nothing is fitted to these figures. Transports whose
  messages were not measured have no prediction.
- Before the run: predictions that know no time of it. They were written to the file before a group was measured. Those
  of H200 follow what one GPU took in an earlier run of the same day. Those of H100 know no time of these kernels.
- By the model: the same of today's model, that knows no time of these kernels, not even on one GPU.
"""


class Row(NamedTuple):
    """A coupling of a group: what was measured, and what is predicted of it, if the model knows it.

    by_model: its speed if the time of one GPU is not known, either.
    """

    group: dict[str, Any]
    coupling: Coupling
    mlups: float
    efficiency: float
    exchange_s: float
    predicted: float | None
    period: Period | None
    by_model: float | None = None

    @property
    def name(self) -> str:
        """Return the kernel and the coupling."""
        return f"{self.group['name']}: {self.coupling}"

    @property
    def speed_error(self) -> float:
        """Return how far the predicted efficiency is off; 0 if none is predicted."""
        return self.predicted / self.efficiency - 1 if self.predicted else 0.0

    @property
    def exchange_error(self) -> float:
        """Return how far the predicted time of the exchange is off; 0 if none is predicted."""
        return self.period.exchange_s / self.exchange_s - 1 if self.period else 0.0

    @property
    def cells(self) -> list[str]:
        """Return the cells of its row of the page."""
        return [
            self.group["name"],
            extents(self.group["domain"]),
            str(self.group["depth"]),
            f"`{str(self.coupling) or 'default'}`",
            f"{self.mlups:,.0f}",
            f"{self.efficiency:.3f}",
            f"{self.predicted:.3f}" if self.predicted else "",
            f"{1e6 * self.exchange_s:.0f}",
            f"{1e6 * self.period.exchange_s:.0f}" if self.period else "",
        ]


@cache
def rows(title: str) -> tuple[Row, ...]:
    """Return the rows of a recorded file, by its title."""
    found = json.loads(FILES[title].read_text(encoding="utf-8"))
    machine = with_measured(read_machine(FILES[title].parent / "machine.toml"), found["links"])
    return tuple(row for group in found["groups"] for row in _rows(group, machine))


def _rows(group: dict[str, Any], machine: Machine) -> Iterator[Row]:
    one, devices = from_flat(group["config"]), group["devices"]
    alone_cells, cells = group["cells"]
    share = cells / alone_cells / devices
    launch_s = median(group["alone_s"]) * one.fused_steps / group["steps"]
    alone = decomposed(_case(group, group["alone_domain"]), one, parse_cut("1x1x1"))
    own = measured_over_predicted(alone, machine, launch_s)
    found = decomposed(_case(group, _whole(group)), one, parse_cut(group["cut"]), group["depth"])
    for each in group["couplings"]:
        coupling, took = Coupling(**{knob: each[knob] for knob in vars(Coupling())}), median(each["period_s"])
        efficiency = share * paired_ratio(group["alone_s"], each["period_s"]).median
        expected, predicted, by_model = None, None, None
        if machine.links and known_transport(machine.links, coupling.transport):
            expected = period(found, machine, coupling, own=own)
            predicted = share * median(group["alone_s"]) / expected.total_s
            by_model = cells * group["steps"] / period(found, machine, coupling).total_s / 1e6
        mlups = cells * group["steps"] / took / 1e6
        yield Row(group, coupling, mlups, efficiency, each["exchange_s"], predicted, expected, by_model)


def _case(group: dict[str, Any], domain: Sequence[int]) -> Case:
    x, y, z = domain
    case = FLOWS[group["flow"]](group["lattice"], group["collision"], (x, y, z), RATE)
    return replace(case, geometry=group["geometry"])


def _whole(group: dict[str, Any]) -> tuple[int, int, int]:
    """Return the cells of all devices: in weak scaling as many times as long along the axis that is cut."""
    x, y, z = group["domain"]
    if group["kind"] != "weak":
        return x, y, z
    along = group["cut"].partition(":")[0]
    factors = [group["devices"] if axis == (along if along in "xyz" else "z") else 1 for axis in "xyz"]
    return x * factors[0], y * factors[1], z * factors[2]


def within(found: Sequence[Row]) -> str:
    """Return how many predictions are as close as asked for, and the median of all errors."""
    known = [row for row in found if row.predicted]
    speeds, exchanges = [abs(row.speed_error) for row in known], [abs(row.exchange_error) for row in known]
    return (
        f"{len(found)} couplings, of which {len(known)} are predicted: efficiency within {MOST_OF_SPEED:.0%} of "
        f"{sum(error <= MOST_OF_SPEED for error in speeds)} (median {median(speeds):.1%}), exchange within "
        f"{MOST_OF_EXCHANGE:.0%} of {sum(error <= MOST_OF_EXCHANGE for error in exchanges)} "
        f"(median {median(exchanges):.1%})."
    )


def foretold(found: Sequence[Row]) -> list[tuple[float, float, float]]:
    """Return how far predictions made before the run are off: speed, efficiency and exchange, relative."""
    pairs = [(row, row.group["predicted"].get("couplings", {}).get(str(row.coupling))) for row in found]
    return [
        (
            known["mlups"] / row.mlups - 1,
            known["efficiency"] / row.efficiency - 1,
            known["exchange_s"] / row.exchange_s - 1,
        )
        for row, known in pairs
        if known
    ]


def before_the_run(found: Sequence[Row]) -> str:
    """Return how many of these predictions are as close as asked for, and the medians of their errors."""
    errors = foretold(found)
    names = ("speed", MOST_OF_SPEED), ("efficiency", MOST_OF_SPEED), ("exchange", MOST_OF_EXCHANGE)
    said = []
    for (name, most), column in zip(names, zip(*errors, strict=True), strict=True):
        off = [abs(error) for error in column]
        said.append(f"{name} within {most:.0%} of {sum(error <= most for error in off)} (median {median(off):.1%})")
    return f"Before the run, of {len(errors)}: {', '.join(said)}." if errors else ""


def by_the_model(found: Sequence[Row]) -> str:
    """Return how many speeds are as close as asked for without any time of the kernels, and the median error."""
    off = [abs(row.by_model / row.mlups - 1) for row in found if row.by_model]
    close = sum(error <= MOST_OF_SPEED for error in off)
    return f"By the model, of {len(off)}: speed within {MOST_OF_SPEED:.0%} of {close} (median {median(off):.1%})."


def provenance(title: str) -> str:
    """Return the cards of a recorded file, their driver and the date."""
    found = json.loads(FILES[title].read_text(encoding="utf-8"))
    return f"{found['devices']} {found['device']} of one host, driver {found['driver']}, {found['date']}."


def page() -> str:
    """Return the page."""
    lines = [TEXT]
    for title in FILES:
        found = rows(title)
        table = [HEAD, "|---|---|---|---|---|---|---|---|---|", *(f"| {' | '.join(row.cells)} |" for row in found)]
        counted = "\n".join(filter(None, (within(found), before_the_run(found), by_the_model(found))))
        lines += [f"## {title}\n", provenance(title), f"{counted}\n", *table, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> None:
    """Write the page."""
    write_atomically(PAGE, page().encode())
    print(PAGE)


if __name__ == "__main__":
    main()
