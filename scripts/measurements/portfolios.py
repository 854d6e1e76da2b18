"""Few kernels for many domains: search them on a device, then check the rule on domains that it has not seen.

    python -m scripts.measurements.portfolios OUT --device 0 --time 5m             the four cases of D3Q19 fp32
    python -m scripts.measurements.portfolios OUT --cases box-one-step --domains 64:512 --unseen 40 --check-time 3m

A portfolio of OUT that was cut short is gone on with, a whole one is taken, and a case whose unseen domains were
measured is done. So calls may be cut, take one case each, or search first (`--unseen 0`) and check in a second call.
Prints a row for each case: kernels, lines of the rule, the worst loss of its own check and on the unseen domains, and
on how many of these the default kernel is faster. Losses on unseen domains are those of the rule, and those of a choice
that is measured there, by one sample of each kernel that the rule holds possible. Exits with 1 if there are more than 6
kernels, or if the rule or the measured choice has a loss above 3 %, or a domain on which the default is faster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lbmtune import api
from lbmtune.api.portfolios.result import BEST
from lbmtune.records.best_json.document import read_best
from lbmtune.records.portfolio_store import holds_portfolio
from lbmtune.units import parse_duration_s

FP32 = ("storage=fp32",)
ONE_STEP = ("families=direct,column", "case.collision=bgk", *FP32)
MOMENTS = ("families=temporal-blocking", "representation=moments", "case.collision=regularised", *FP32)
CASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "box-one-step": ("box", ONE_STEP),
    "box-moments": ("box", MOMENTS),
    "cavity-one-step": ("cavity", ONE_STEP),
    "cavity-moments": ("cavity", MOMENTS),
}
"""Shipped studies with what differs."""
MOST_KERNELS, MOST_LOSS = 6, 0.03
WAYS = ("rule", "measured")
"""How a kernel is chosen."""


def searched(name: str, folder: Path, domains: str, device: str, time: str) -> dict[str, Any]:
    """Return the facts of the portfolio of a case, which is searched, gone on with, or there."""
    study, overrides = CASES[name]
    options = [*overrides, f"budget.time={time}"]
    whole = folder / BEST
    if not whole.exists():
        api.portfolio(study, domains, device, folder, overrides=options, resume=holds_portfolio(folder))
    best = read_best(whole)
    found = best.portfolio
    assert found
    return {
        "case": name,
        "device": best.environment.device,
        "kernels": len(found.kernels),
        "lines": len(found.rule),
        "robust_loss": found.robust_loss,
        "checked": found.checked,
        "worst_checked": found.worst_loss,
        "left_out": found.left_out,
    }


def unseen(folder: Path, device: str, count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Return what the rule, and a choice that is measured, reach on domains that nobody measured before."""
    found = api.unseen(folder, device, count, seed=seed, seconds=seconds)
    return {
        "unseen": len(found),
        "rule": _summary([one.row.loss for one in found], [one.row.behind_default for one in found]),
        "measured": _summary([one.measured.loss for one in found], [one.measured_behind_default for one in found]),
        "rows": [
            {
                "domain": one.row.domain,
                "loss": one.row.loss,
                "over_default": one.row.mlups / one.row.default_mlups,
                "kernel": one.row.kernel,
                "fastest": one.row.fastest,
                "measured": one.measured.trial.key,
                "measured_loss": one.measured.loss,
                "timed": one.timed,
            }
            for one in found
        ],
    }


def _summary(losses: Sequence[float], behind: Sequence[bool]) -> dict[str, Any]:
    """Return the worst and mean loss, how many are above what they may be, and how often the default is faster."""
    return {
        "worst": max(losses, default=1.0),
        "mean": sum(losses) / max(len(losses), 1),
        "above": sum(loss > MOST_LOSS for loss in losses),
        "behind_default": sum(behind),
    }


def holds(facts: Mapping[str, Any], domains: int) -> bool:
    """Return whether a case has what is asked of it, on so many unseen domains."""
    return bool(
        facts["unseen"] >= domains
        and facts["kernels"] <= MOST_KERNELS
        and all(facts[way]["worst"] <= MOST_LOSS for way in WAYS)
        and all(facts[way]["behind_default"] == 0 for way in WAYS)
    )


def line(facts: Mapping[str, Any]) -> str:
    """Return a row of the table."""
    own = "none" if facts["worst_checked"] is None else f"{facts['worst_checked']:.1%} of {facts['checked']}"
    return (
        f"{facts['case']:16} {facts['kernels']} kernels, {facts['lines']} lines, one alone {facts['robust_loss']:.1%}, "
        f"own check {own}, {facts['unseen']} unseen, rule {_said(facts['rule'])}, measured {_said(facts['measured'])}"
    )


def _said(summary: Mapping[str, Any]) -> str:
    return (
        f"{summary['worst']:.1%} (mean {summary['mean']:.1%}, {summary['above']} above {MOST_LOSS:.0%}, default faster "
        f"on {summary['behind_default']})"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a case has not what is asked of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the portfolios, and of portfolios.json")
    parser.add_argument("--device", default="0")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--domains", default="64:512")
    parser.add_argument("--time", default="5m", help="of each case, without the unseen domains")
    parser.add_argument("--unseen", type=int, default=40)
    parser.add_argument("--check-time", default="3m", help="of the unseen domains of each case")
    parser.add_argument("--seed", type=int, default=77, help="of the unseen domains")
    given = parser.parse_args(arguments)
    kept = given.out / "portfolios.json"
    found: dict[str, Any] = {one["case"]: one for one in json.loads(kept.read_text())} if kept.exists() else {}
    names = given.cases.split(",")
    for name in (one for one in names if found.get(one, {}).get("unseen", -1) < given.unseen):
        folder = given.out / name
        facts = searched(name, folder, given.domains, given.device, given.time)
        facts |= unseen(folder, given.device, given.unseen, given.seed, parse_duration_s(given.check_time))
        found[name] = facts
        kept.write_text(json.dumps([*found.values()], indent=1))
    asked = [found[name] for name in names]
    print("\n".join(map(line, asked)))
    return int(not all(holds(one, given.unseen) for one in asked))


if __name__ == "__main__":
    sys.exit(main())
