"""Print the kernels for many domains: their rule, the loss on each domain, and the one that is robust."""

from __future__ import annotations

import logging
from pathlib import Path

from lbmtune.cli.format import output
from lbmtune.records.best_json.portfolio import CHECKED, Portfolio
from lbmtune.records.comparison.repeats import percent
from lbmtune.units import format_mlups

LOG = logging.getLogger("lbmtune")
_KERNELS = ("kernel>", "domains>", "worst loss>", "key", "configuration")
_DOMAINS = ("domain", "part", "kernel>", "MLUPS>", "fastest>", "loss>", "default>")


def print_portfolio(portfolio: Portfolio, best: Path) -> None:
    """Print kernels, rule and domains of a portfolio, and what its check says."""
    console = output.stdout()
    kernels = (
        (number, one.covers, percent(one.worst_loss), one.key, output.short(one.configuration))
        for number, one in enumerate(portfolio.kernels, 1)
    )
    console.print(output.table(f"kernels for {portfolio.domains}", _KERNELS, kernels), "")
    console.print(output.table("rule, the first that holds", ("if", "kernel>"), portfolio.said), "")
    rows = (
        (
            "x".join(map(str, row.domain)),
            row.part,
            row.kernel + 1,
            format_mlups(row.mlups),
            format_mlups(row.fastest_mlups),
            percent(row.loss),
            format_mlups(row.default_mlups),
        )
        for row in portfolio.rows
    )
    console.print(output.table("domains", _DOMAINS, rows), "")
    robust = portfolio.kernels[portfolio.robust]
    pairs = [
        ("check", check_text(portfolio)),
        ("one kernel", f"{robust.key} loses at most {percent(portfolio.robust_loss)}"),
        *([("left out", "; ".join(portfolio.left_out))] if portfolio.left_out else []),
    ]
    output.print_pairs(pairs)
    console.print(f"best.json  {best}", markup=False)
    if portfolio.worst_loss is None or portfolio.worst_loss > portfolio.tolerance or portfolio.behind_default:
        LOG.warning("not every domain was found within %s: %s", percent(portfolio.tolerance), check_text(portfolio))


def check_text(portfolio: Portfolio) -> str:
    """Return in words what the check found."""
    if portfolio.worst_loss is None:
        return "none of this rule"
    worst = max((row for row in portfolio.rows if row.part == CHECKED), key=lambda row: row.loss)
    return (
        f"{portfolio.checked} domains that were not searched: worst loss {percent(portfolio.worst_loss)} "
        f"({'x'.join(map(str, worst.domain))}), {portfolio.behind_default or 'none'} slower than the default kernel"
    )
