"""Play all strategies on all recorded sets, and write the table.

    python -m scripts.contest [--sets PATTERN ...] [--strategies NAME ...] [--seeds 100] [--rivals] [--write]

A set is any folder of a study below studies/recorded. Rivals need the extra `contest`; without --rivals their kept
scores stand. With --write the kept scores, the page and the plot (build/search-contest.html) are renewed; with
--strategies and no name nothing is played.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

from lbmtune.report.html import figure_page
from lbmtune.search.strategies.table import STRATEGIES
from scripts.contest import table
from scripts.contest.page import PAGE, PLOT, Contest, plot, renewed
from scripts.contest.play import played
from scripts.contest.rivals import RIVALS
from scripts.contest.score import MARKS, Score, score
from scripts.contest.sets import STARTS, World, names, world

OURS = ("auto", "list", "gp", "random")
_MODELLESS = ("random", "tpe", "cmaes", "nsga2")
"""Strategies of ours that no model guides."""


def main(arguments: Sequence[str]) -> int:
    """Play, print each score, and keep them if asked to; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=["*"], help="patterns of folders below studies/recorded")
    parser.add_argument("--strategies", nargs="*", help=f"of {', '.join([*STRATEGIES, *RIVALS])}")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--rivals", action="store_true", help="play the rivals instead of ours")
    parser.add_argument("--results", type=Path, default=table.RESULTS, help="the kept scores")
    parser.add_argument("--write", action="store_true", help="keep the scores, and renew the page and the plot")
    given = parser.parse_args(arguments)
    chosen = given.strategies if given.strategies is not None else list(RIVALS if given.rivals else OURS)
    for name in names() if chosen else ():
        if not any(fnmatch(name, pattern) for pattern in given.sets):
            continue
        for one in scores(world(name), chosen, given.seeds):
            shares = " ".join(f"{one.at(mark):.3f}" for mark in MARKS)
            print(f"{name:42} {one.strategy:36} {one.start:10} {shares} {one.to_99}/{one.to_99_p95}", flush=True)
            if given.write:
                kept = {**table.kept(given.results), one.key: one}
                given.results.write_text(table.text(kept.values()), encoding="utf-8")
    if given.write:
        contest = Contest(table.kept(given.results))
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8"), contest), encoding="utf-8")
        PLOT.parent.mkdir(exist_ok=True)
        PLOT.write_bytes(figure_page("Search strategies on recorded sets", plot(contest), "80vh"))
    return 0


def scores(this: World, strategies: Sequence[str], seeds: int) -> Iterator[Score]:
    """Yield the scores of strategies on a set, of those with a model from each start."""
    budget = min(MARKS[-1], len(this.configs))
    for name in strategies:
        if name in RIVALS:
            yield score(this, name, "none", RIVALS[name](this, range(seeds), budget))
            continue
        if name in _MODELLESS:
            yield score(this, name, "none", [played(this, STRATEGIES[name], seed, budget) for seed in range(seeds)])
            continue
        for start in STARTS if this.backend == "cuda" else STARTS[:2]:  # of a CPU nothing but its bandwidths is cold
            runs = [played(this, STRATEGIES[name], seed, budget, start=start) for seed in range(seeds)]
            yield score(this, name, start, runs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
