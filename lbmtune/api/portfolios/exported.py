"""Export a portfolio: a header for each kernel, and one that chooses between them."""

from __future__ import annotations

import re
from pathlib import Path

from lbmtune.api.objects import HOST, write_object
from lbmtune.api.portfolios.result import BEST
from lbmtune.errors import InputError
from lbmtune.export.cuda_header import write_cuda_header
from lbmtune.export.portfolio_rule import rule_header
from lbmtune.records.best_json.document import read_best
from lbmtune.records.store import write_atomically

FORMATS = ("cuda", "c")


def export_portfolio(
    folder: Path, kind: str, path: Path | None = None, *, name: str | None = None, target: str | None = None
) -> Path:
    """Write the headers of all kernels of a portfolio, and NAME.h with its rule; return the path of that.

    folder: of the portfolio; kind: 'cuda', or 'c' for object code of a CPU; path: folder of the headers, default
    NAME in that of the portfolio; name: prefix of all names, default that of the study; target: processors of objects.
    Raises InputError for a kernel that a header cannot hold.
    """
    if kind not in FORMATS:
        raise InputError(f"format={kind} is not supported for a portfolio (use {' or '.join(FORMATS)}, or its {BEST}).")
    best = read_best(folder / BEST)
    if best.portfolio is None:
        raise InputError(f"{folder / BEST} holds no portfolio; give the folder of lbmtune study --domains.")
    chosen = name or re.sub(r"\W+", "_", best.study).strip("_").lower()
    text = rule_header(best.portfolio, chosen, best.lbmtune)
    place = path or folder / chosen
    for number in range(1, len(best.portfolio.kernels) + 1):
        one, header = best.of_portfolio(number - 1), place / f"{chosen}_{number}.h"
        if kind == "cuda":
            write_cuda_header(one, header, f"{chosen}_{number}")
        else:
            write_object(one, header, f"{chosen}_{number}", target or HOST)
    write_atomically(place / f"{chosen}.h", text.encode())
    return place / f"{chosen}.h"
