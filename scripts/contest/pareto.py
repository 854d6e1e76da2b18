"""Pareto sets between speed and footprint on recorded sets, against brute force.

python -m scripts.contest.pareto            # prints the table of all sets
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.process_pool import mapped, pool
from lbmtune.records.store import read_study
from lbmtune.search.interfaces import Strategy
from lbmtune.search.pareto import hypervolume
from lbmtune.search.strategies.ordered import Task
from lbmtune.search.strategies.table import strategy
from scripts.contest import play
from scripts.contest.sets import STARTS, Array, Start, World, names, world
from scripts.paths import RECORDED

AFTER = (10, 25, 50, 100)
"""Evaluations after which a set is judged."""
PLAYERS = ("auto", "speed", "nsga2", "tpe", "random")
"""Strategies, which are told footprints; speed: `auto` that is not."""
_SPEED = "speed"
_BEYOND = 0.1
"""How far the reference point lies beyond the largest footprint, relative to it."""


def footprints(found: World) -> Array:
    """Return the footprint of each configuration of a set, in bytes."""
    case = read_study(RECORDED / found.name).header.spec.case
    return np.array([footprint_bytes(case, config) for config in found.configs], dtype=float)


def maker(name: str, sizes: dict[str, float]) -> Callable[[Task], Strategy]:
    """Return what makes a strategy that is told footprints. sizes: by the key of a configuration."""

    def made(task: Task) -> Strategy:
        costs = np.array([[sizes[config.key]] for config in task.configs])
        return strategy("auto", task) if name == _SPEED else strategy(name, replace(task, costs=costs))

    return made


def shares(found: World, sizes: Array, orders: Sequence[Sequence[int]]) -> Array:
    """Return the share of the hypervolume of brute force (orders, `AFTER`), down to no speed."""
    points = np.column_stack([-np.nan_to_num(found.measured), sizes])
    reference = np.array([0.0, (1 + _BEYOND) * sizes.max()])
    whole = hypervolume(points, reference)
    return np.array([[hypervolume(points[list(one[:n])], reference) / whole for n in AFTER] for one in orders])


def played(player: str, seeds: int, start: Start, name: str) -> Array:
    """Return the shares of a strategy on a set (seeds, `AFTER`)."""
    found = world(name)
    sizes = footprints(found)
    by_key = {config.key: size for config, size in zip(found.configs, sizes, strict=True)}
    make = maker(player, by_key)
    orders = [play.played(found, make, seed, max(AFTER), start=start, beyond=True).order for seed in range(seeds)]
    return shares(found, sizes, orders)


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=10)
    arguments.add_argument("--players", default=",".join(PLAYERS))
    arguments.add_argument("--start", choices=STARTS, default=STARTS[0], help="by what the model predicts")
    arguments.add_argument("--sets", default="", help="names that begin so")
    asked = arguments.parse_args()
    chosen = [name for name in names() if name.startswith(asked.sets)]
    for name in chosen:
        world(name)
    print(f"median and worst share of the hypervolume after {AFTER} evaluations, {asked.seeds} seeds")
    for player in asked.players.split(","):
        with pool(2) as processes:
            task = partial(played, player, asked.seeds, asked.start)
            rows = list(mapped(processes, task, chosen, 1))
        for name, row in zip(chosen, rows, strict=True):
            print(
                f"{player:8} {name:42}",
                *(f"{m:.4f}/{w:.4f}" for m, w in zip(np.median(row, 0), row.min(0), strict=True)),
            )
        every = np.array(rows)
        print(
            f"{player:8} {'mean; worst set':42}",
            *(f"{m:.4f}/{w:.4f}" for m, w in zip(np.median(every, 1).mean(0), np.median(every, 1).min(0), strict=True)),
            flush=True,
        )


if __name__ == "__main__":
    main()
