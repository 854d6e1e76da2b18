"""Set what output cost in the recorded studies beside its prediction, as a table in Markdown.

python -m scripts.recorded.output_costs [--docs docs/lab/output.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from lbmtune.catalogue.config import from_flat
from lbmtune.records.store import read_header, read_study
from lbmtune.records.whole_files import HEADER
from lbmtune.report.study.output import output_table
from lbmtune.search.kinds import kind_of
from scripts.check_recorded import with_rows
from scripts.paths import RECORDED, ROOT

PAGE = ROOT / "docs" / "lab" / "output.md"
HEAD = "| set | kernel | output | of the time | predicted | each takes | predicted |\n|---|---|---|---|---|---|---|\n"


def folders() -> list[Path]:
    """Return the recorded sets of studies with output."""
    found = sorted(header.parent for header in RECORDED.rglob(HEADER))
    return [folder for folder in found if read_header(folder).spec.output]


def rows(folder: Path) -> Iterator[str]:
    """Yield a line for each kind of output of each finalist, winner first."""
    study = read_study(folder)
    kernels = {str(trial.number): kind_of(from_flat(trial.config)) for trial in study.ranked}
    for one in output_table(study):
        name = f"{folder.parent.name}/{folder.name}"
        kernel = f"{kernels[one['trial']]} ({one['trial']})"
        measured = f"{one['share']} ({one['range']})"
        cells = (name, kernel, one["output"], measured, one["predicted"], one["each"], one["parts"])
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="page whose table is replaced")
    page = parser.parse_args().docs
    lines = [line for folder in folders() for line in rows(folder)]
    if page:
        page.write_text(with_rows(page.read_text(), HEAD, lines))
    else:
        print(HEAD, *(f"{line}\n" for line in lines), sep="", end="")


if __name__ == "__main__":
    main()
