"""Play `auto` on recorded sets with and without others as earlier studies, and write the tables.

    python -m scripts.contest.transfer [--seeds 20] [--write]

First each set after one other: the most similar of those that differ in the card alone, in the precision alone, and in
the domain alone. Then each set after the most similar ones, as a study takes them by itself. With --write the page is
renewed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import exp, log
from pathlib import Path
from statistics import fmean

import numpy as np

from lbmtune.api.studies.earlier import MOST_STUDIES, ranked
from lbmtune.cores import usable_cores
from lbmtune.process_pool import mapped, pool
from lbmtune.records.store import read_header
from lbmtune.search.interfaces import Strategy
from lbmtune.search.strategies.auto import Auto
from lbmtune.search.strategies.ordered import Task
from lbmtune.search.strategies.transfer import Source, source
from scripts.contest.play import played
from scripts.contest.sets import Start, World, names, world
from scripts.paths import RECORDED, ROOT

PAGE = ROOT / "docs" / "design" / "transfer.md"
_BEGIN, _END = "<!-- evaluations -->\n", "<!-- /evaluations -->"
_PRECISIONS = ("fp16s", "fp32", "fp64")
_SHAPES = ("oblong",)
"""Words of a name that say the domain, besides numbers of cells."""
LEAST = 3
"""Evaluations that `auto` needs alone where an earlier study may halve them."""
GOAL, BUDGET, NEVER = 0.99, 100, 150
"""Share of the best that is looked for, evaluations within which, and what counts for more."""
STARTS: tuple[Start, ...] = ("calibrated", "bandwidths")


@dataclass(frozen=True)
class Row:
    """Mean evaluations of a set from a start, alone and after earlier ones."""

    now: str
    before: tuple[str, ...]
    start: Start
    alone: float
    after: float


def main(arguments: Sequence[str]) -> int:
    """Play, print the tables, and renew the page if asked to; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="renew the page")
    given = parser.parse_args(arguments)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of the processes that play
    found = list(rows([((before,), now) for before, now in pairs()], given.seeds))
    others = list(rows([(similar(now), now) for now in names() if similar(now)], given.seeds))
    text = "\n".join([*_pairs(found, given.seeds), "", *_others(others)]) + "\n"
    print(text, end="")
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        begin, end = page.index(_BEGIN) + len(_BEGIN), page.index(_END)
        PAGE.write_text(page[:begin] + text + page[end:], encoding="utf-8")
    return 0


def pairs() -> list[tuple[str, str]]:
    """Return an earlier and a new set: of those that differ in one respect alone, the most similar one."""
    found = []
    for now in names():
        order = _ranked(now)
        for respect in ("card", "precision", "domain"):
            alike = [name for name in order if differ(name, now) == (respect,)]
            found += [(name, now) for name in alike[:1]]
    return found


def differ(name: str, other: str) -> tuple[str, ...]:
    """Return in what two sets differ, by their names: the card, the precision, the domain, or else the question."""
    here, there = _parts(name), _parts(other)
    return tuple(part for part in here if here[part] != there[part])


def _parts(name: str) -> dict[str, tuple[str, ...]]:
    card, words = Path(name).parts[0], Path(name).name.split("-")
    precision = tuple(word for word in words if word in _PRECISIONS)
    domain = tuple(word for word in words if word.isdecimal() or word in _SHAPES)
    question = tuple(word for word in words if word not in precision + domain)
    return {"card": (card,), "precision": precision, "domain": domain, "question": question}


def similar(now: str) -> tuple[str, ...]:
    """Return the sets that a study of this question takes as earlier ones."""
    return tuple(_ranked(now)[:MOST_STUDIES])


def _ranked(now: str) -> list[str]:
    headers = {Path(name): read_header(RECORDED / name) for name in names()}
    here = headers.pop(Path(now))
    return list(map(str, ranked(headers, here.spec, here.environment)))


def rows(asked: Sequence[tuple[tuple[str, ...], str]], seeds: int) -> Iterator[Row]:
    """Yield a row of each earlier and new sets, and each start."""
    with pool(usable_cores()) as processes:
        yield from mapped(processes, partial(_row, seeds), [(*one, start) for start in STARTS for one in asked], 1)


def _row(seeds: int, asked: tuple[tuple[str, ...], str, Start]) -> Row:
    before, now, start = asked
    known = [lesson(world(name), start) for name in before]
    alone, after = (
        fmean(evaluations(world(now), sources, seed, start) for seed in range(seeds)) for sources in ([], known)
    )
    return Row(now, before, start, alone, after)


def lesson(earlier: World, start: Start) -> Source:
    """Return what a study learns from a recorded set, predicted as the new one is."""
    predicted = earlier.expected(start)[:, 1]
    measured = [place for place, seen in enumerate(earlier.seen) if seen.mlups]
    speeds, noise = (np.array([getattr(earlier.seen[i], name) for i in measured]) for name in ("mlups", "noise"))
    return source([earlier.configs[i] for i in measured], speeds, lambda i: float(predicted[measured[i]]), noise)


def evaluations(now: World, sources: Sequence[Source], seed: int, start: Start) -> int:
    """Return the evaluations of `auto` to the goal."""

    def maker(task: Task) -> Strategy:
        return Auto(replace(task, sources=sources))

    order = played(now, maker, seed, BUDGET, start=start, goal=GOAL).order
    return len(order) if now.share[order[-1]] >= GOAL else NEVER


def _pairs(found: Sequence[Row], seeds: int) -> Iterator[str]:
    """Yield the table of the pairs."""
    yield f"Mean evaluations to 99 % of the best of a set, {seeds} seeds (`{NEVER}` counts for more than {BUDGET}):"
    yield ""
    yield "| earlier | new | calibrated | after | ratio | bandwidths | after | ratio |"
    yield "|---|---|---|---|---|---|---|---|"
    half = len(found) // 2
    for warm, cold in zip(found[:half], found[half:], strict=True):
        cells = [f"{one.alone:.1f} | {one.after:.1f} | {one.after / one.alone:.2f}" for one in (warm, cold)]
        yield f"| {_short(warm.before[0])} | {_short(warm.now)} | {' | '.join(cells)} |"
    yield ""
    for start in STARTS:
        yield from _summary("pairs", [one for one in found if one.start == start])
    yield from _lost(found)


def _others(found: Sequence[Row]) -> Iterator[str]:
    """Yield the summary of the sets after the most similar others, and those that lost."""
    yield f"Every set after the {MOST_STUDIES} most similar others, which a study takes by itself:"
    yield ""
    for start in STARTS:
        yield from _summary("sets", [one for one in found if one.start == start])
    yield from _lost(found)


def _lost(found: Sequence[Row]) -> Iterator[str]:
    lost = [one for one in found if one.after > 2 * one.alone]
    if lost:
        named = [f"{_short(one.now)} {one.start} {one.alone:.1f} to {one.after:.1f}" for one in lost]
        yield f"- More than twice as many: {', '.join(named)}."


def _summary(what: str, found: Sequence[Row]) -> Iterator[str]:
    ratios = [one.after / one.alone for one in found]
    long = [one.after / one.alone for one in found if one.alone >= LEAST]
    yield (
        f"- {found[0].start.capitalize()}: halved on {sum(ratio <= 0.5 for ratio in long)} of "
        f"{len(long)} {what} on which `auto` alone needs at least {LEAST}, {exp(fmean(map(log, long))):.2f} of the "
        f"evaluations (geometric mean). More than doubled on {sum(ratio > 2 for ratio in ratios)} of all {len(found)}."
    )


@cache
def _short(name: str) -> str:
    return name.removeprefix("nvidia-")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
