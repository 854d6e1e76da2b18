"""The page of a portfolio: kernels, rule, and for each domain the kernel with its loss."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from pathlib import Path

from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.portfolio import CHECKED, Portfolio, PortfolioRow
from lbmtune.records.comparison.repeats import percent
from lbmtune.records.whole_files import write_atomically
from lbmtune.report.drawing import MARK, NEUTRAL, PALETTE, Figure, log_axis, plain_figure
from lbmtune.report.html import filled, panel
from lbmtune.report.tables import case_title, environment_table, product_text
from lbmtune.units import format_mlups

_LOSSES = "Points: measured domains, in the colour of the kernel that the rule chooses. Line: the loss that is allowed."
_SPEEDS = "Points: the chosen kernel. Crosses: the default kernel on the same domain."


def write_portfolio_page(best: Best, path: Path, version: str) -> None:
    """Write the page of a best.json with a portfolio as one file that works offline.

    Raises InputError if the path cannot be written.
    """
    write_atomically(path, page(best, version).encode(), "choose another file for --output")


def page(best: Best, version: str) -> str:
    """Return the HTML text. version: of the one that writes it."""
    found = best.portfolio
    assert found is not None
    panels = [
        panel("losses", "Loss by size", _LOSSES, losses_figure(found)),
        panel("speeds", "Speed by size", _SPEEDS, speeds_figure(found, best.case.speed_unit)),
    ]
    return filled(
        "portfolio.html",
        ("script.js", "start.js"),
        panels,
        name=best.study,
        case=case_title(best.case),
        headline=headline(found),
        left_out=found.left_out,
        kernels=list(_kernel_rows(found)),
        rule=found.said,
        domains=list(_domain_rows(found)),
        environment=environment_table(best.environment),
        unit=best.case.speed_unit,
        version=version,
    )


def headline(found: Portfolio) -> str:
    """Return what the portfolio reaches in a sentence."""
    count = len(found.kernels)
    kernels = f"{count} kernel{'s' * (count != 1)} for domains {found.domains}"
    alone = f"the robust one alone loses at most {percent(found.robust_loss)}"
    if found.worst_loss is None:
        return f"{kernels}: the rule was not checked; {alone}"
    slower = f"{found.behind_default or 'none'} slower than the default"
    checked = f"{found.checked} domains that were not searched: worst loss {percent(found.worst_loss)}, {slower}"
    return f"{kernels}. {checked}; {alone}"


def losses_figure(found: Portfolio) -> Figure:
    """Draw the loss over the cells of a domain, by kernel."""
    drawn = _by_kernel(found, "loss, %", lambda row: 100 * row.loss, lambda row: f"loses {percent(row.loss)}")
    drawn.add_hline(y=100 * found.tolerance, line={"color": MARK, "dash": "dash"})
    return drawn


def speeds_figure(found: Portfolio, unit: str) -> Figure:
    """Draw the speed over the cells of a domain, by kernel, with that of the default kernel."""
    drawn = _by_kernel(found, unit, lambda row: row.mlups, lambda row: f"{format_mlups(row.mlups)} {unit}")
    drawn.add_scatter(
        x=[prod(row.domain) for row in found.rows],
        y=[row.default_mlups for row in found.rows],
        name="default",
        mode="markers",
        marker={"color": NEUTRAL, "symbol": "x-thin-open", "size": 7},
    )
    return drawn


def _by_kernel(
    found: Portfolio, title: str, value: Callable[[PortfolioRow], float], said: Callable[[PortfolioRow], str]
) -> Figure:
    drawn = plain_figure("cells", title)
    for number in range(len(found.kernels)):
        rows = [row for row in found.rows if row.kernel == number]
        drawn.add_scatter(
            x=[prod(row.domain) for row in rows],
            y=[value(row) for row in rows],
            name=f"kernel {number + 1}",
            mode="markers",
            marker={
                "color": PALETTE[number % len(PALETTE)],
                "size": 8,
                "symbol": ["circle" if row.part == CHECKED else "circle-open" for row in rows],
            },
            customdata=[f"{product_text(row.domain)}, {row.part}: {said(row)}" for row in rows],
            hovertemplate="%{customdata}<extra></extra>",
        )
    cells = [prod(row.domain) for row in found.rows] or [1]
    log_axis(drawn.update_xaxes, 0.8 * min(cells), 1.25 * max(cells))
    return drawn


def _kernel_rows(found: Portfolio) -> Iterator[Sequence[object]]:
    for number, one in enumerate(found.kernels, 1):
        said = ", ".join(f"{name}={value}" for name, value in one.configuration.items())
        role = "robust" if number - 1 == found.robust else ""
        yield number, one.covers, percent(one.worst_loss), one.key, role, said


def _domain_rows(found: Portfolio) -> Iterator[Sequence[object]]:
    for row in found.rows:
        yield (
            product_text(row.domain),
            row.part,
            row.kernel + 1,
            format_mlups(row.mlups),
            format_mlups(row.fastest_mlups),
            percent(row.loss),
            format_mlups(row.default_mlups),
            "slower than the default" if row.behind_default else "",
        )
