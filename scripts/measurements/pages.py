"""Pages in a browser: seconds until the first screen, the table of trials and all figures are there.

    python -m scripts.measurements.pages [STUDY ...] [--times 5]

Writes the reports of six recorded sets, of 5,000 trials of several sets and of given study folders, and opens
each so many times in a headless Chromium at 1280 x 900. Prints medians by the marks of the pages; figures of a machine
with other work are too long. Exit code 1 if a page is beyond its limits.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from lbmtune.api import Study
from lbmtune.api.studies.results import beyond
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.page import write_report
from scripts.paths import RECORDED
from tests.support.driven import Driven, browser

SETS = (
    *("nvidia-h200/d3q19-box-fp32", "nvidia-h200/d3q19-box-fp16s", "nvidia-h200/d3q19-box-fast-fp32"),
    *("nvidia-h200/d3q19-small-96", "nvidia-h100/d3q19-moments-fp32", "zen3-2-cores/d3q19-box-fast-fp32"),
)
MANY = 5000
LARGE_SETS = (
    *("nvidia-h200/d3q19-box-fp32", "nvidia-h200/d3q19-box-fp16s", "nvidia-h200/d3q19-box-fp64"),
    *("nvidia-h100/d3q19-box-uniform-fp32",),
)
"""Sets of more than so many trials together."""


class Limits(NamedTuple):
    """The most of a page: megabytes, and seconds to build it, to its first screen, to its table and to all of it."""

    megabytes: float
    built_s: float
    first_s: float
    ready_s: float
    whole_s: float


USUAL = Limits(3.0, 8.0, 1.5, 4.0, 4.0)
LARGE = Limits(3.0, 8.0, 1.5, 3.0, 4.0)


def opened(page: Driven, file: Path) -> tuple[float, float, float]:
    """Return the seconds until the first screen, the table and all figures of a page."""
    page.open(file)
    page.draw_all()
    whole = float(page.ask("performance.now()"))
    marks = dict(page.ask("performance.getEntriesByType('mark').map((one) => [one.name, one.startTime])"))
    return marks["first screen"] / 1e3, marks["ready"] / 1e3, whole / 1e3


def measured(file: Path, built_s: float, times: int) -> Limits:
    """Return the figures of a page, medians of several openings."""
    seconds = zip(*(opened(browser(), file) for _ in range(times)), strict=True)
    return Limits(file.stat().st_size / 1e6, built_s, *map(median, seconds))


def many_trials() -> StudyRecord:
    """Return a study with the trials of several recorded sets of GPUs."""
    first, *others = (read_study(RECORDED / name) for name in LARGE_SETS)
    trials = (trial for study in (first, *others) for trial in study.trials)
    return replace(first, trials=tuple(replace(one, number=number) for number, one in enumerate(islice(trials, MANY))))


def written(folder: Path, studies: Sequence[Path]) -> Iterator[tuple[str, Path, float, Limits]]:
    """Yield name, file, seconds of its making and limits of each page."""
    for number, path in enumerate((*(RECORDED / name for name in SETS), *studies)):
        begin, file = time.perf_counter(), folder / f"{number}.html"
        Study(path).report(file)
        yield f"{path.parent.name}/{path.name}", file, time.perf_counter() - begin, USUAL
    many, file = many_trials(), folder / "many.html"
    begin = time.perf_counter()
    write_report(many, file, beyond(many))
    yield f"{MANY:,} trials", file, time.perf_counter() - begin, LARGE


def main(arguments: list[str]) -> int:
    """Print a line for each page; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", type=Path)
    parser.add_argument("--times", type=int, default=5, help="openings of each page")
    given = parser.parse_args(arguments)
    print(f"{'page':36}{'MB':>6}{'built':>8}{'first':>8}{'table':>8}{'all':>8}")
    failed = 0
    with TemporaryDirectory() as folder:
        for name, file, built_s, limits in written(Path(folder), given.studies):
            found = measured(file, built_s, given.times)
            beyond_it = [what for what, one, most in zip(Limits._fields, found, limits, strict=True) if one > most]
            failed += bool(beyond_it)
            numbers = f"{found.megabytes:6.2f}" + "".join(f"{one:8.2f}" for one in found[1:])
            print(f"{name:36}{numbers}{f'   beyond: {beyond_it}' if beyond_it else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
