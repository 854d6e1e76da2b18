"""Export a portfolio: a header or a folder for each kernel, a header that chooses between them, and a page."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from lbmtune import __version__
from lbmtune.api.exporting import write_kernel
from lbmtune.api.portfolios.result import BEST
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.export.portfolio_rule import rule_header
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.records.best_json.portfolio import Portfolio
from lbmtune.records.whole_files import write_atomically

REPORT = "report.html"
FORMATS = ("cuda", "c", "bundle")


def export_portfolio(
    folder: Path, kind: str, path: Path | None = None, *, name: str | None = None, target: str | None = None
) -> Path:
    """Write the headers of all kernels of a portfolio, and NAME.h with its rule; return the path of that.

    folder: of the portfolio; kind: 'cuda', 'c' for object code of a CPU, or 'bundle' for a folder of each kernel and a
    CMake target over all; path: folder of the headers, default NAME in that of the portfolio; name: prefix of all
    names, default that of the study; target: processors of objects.
    Raises InputError for a kernel that a header cannot hold.
    """
    if kind not in FORMATS:
        raise InputError(f"format={kind} is not supported for a portfolio (use {', '.join(FORMATS)}, or its {BEST}).")
    best, portfolio = _read(folder)
    chosen = name or re.sub(r"\W+", "_", best.study).strip("_").lower()
    text = rule_header(portfolio, chosen, best.lbmtune)
    place = path or folder / chosen
    count, on_cpu = len(portfolio.kernels), BACKENDS[best.kernel.target].shares_host
    for number in range(1, count + 1):
        each = f"{chosen}_{number}"
        beside = place / (each if kind == "bundle" else f"{each}.h")
        write_kernel(best.of_portfolio(number - 1), kind, beside, each, target if on_cpu else None)
    if kind == "bundle":
        lists = Template(skeleton("export/bundle/CMakeLists.portfolio.txt.in"))
        text_of_lists = lists.substitute(name=chosen, count=count, languages="C" if on_cpu else "CXX CUDA")
        write_atomically(place / "CMakeLists.txt", text_of_lists.encode())
        write_atomically(place / BEST, (folder / BEST).read_bytes())
    write_atomically(place / f"{chosen}.h", text.encode())
    return place / f"{chosen}.h"


def report_portfolio(folder: Path, path: Path | None = None) -> Path:
    """Write the page of a portfolio, and return its path (default: report.html in the folder). Raises InputError."""
    from lbmtune.report.portfolio import write_portfolio_page  # here: exports need no figures

    best, _ = _read(folder)
    target = path or folder / REPORT
    write_portfolio_page(best, target, __version__)
    return target


def _read(folder: Path) -> tuple[Best, Portfolio]:
    best = read_best(folder / BEST)
    if best.portfolio is None:
        raise InputError(f"{folder / BEST} holds no portfolio; give the folder of lbmtune study --domains.")
    return best, best.portfolio
