"""Kernels of temporal blocking that a conformance run checks: pairwise covering arrays in two and three dimensions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import cuda
from lbmtune.catalogue.families.cuda import temporal_blocking_rules
from lbmtune.catalogue.families.rules import Limits
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.lattice import LATTICES
from tests.support.conformance.choices import LIMITS, ROOMY, WALLED_OR_PERIODIC, Choices, Sample, case_of, sample_of
from tests.support.conformance.directed import Point, Search
from tests.support.conformance.parts.arrays import MOST_POINTS, Covering, Missing, covering_array, decided
from tests.support.once import once

_CANDIDATES, _TRIES, _REPAIRS = 6, 20, 25
_OF_TILES: Mapping[str, tuple[Any, ...]] = {
    "flow": (*WALLED_OR_PERIODIC, "opened", "slipping"),
    "lattice": tuple(name for name in LATTICES if name != "d2q9"),
    "collision": tuple(COLLISIONS),
    "representation": ("moments", "populations"),
    "storage": ("fp64", "fp32", "fp16s", "fp16c", "bf16"),
    "layout": ("soa", "rows"),
    "flags": ("compiled", "memory"),
    "block": ("32x2x1", "32x3x1", "32x8x1", "32x12x1"),
    "chunk_planes": (1, 3, 5),
    "steps": (1, 2, 3, 4),
    "rows": (1, 2, 3, 5),
    "cells_per_thread": (1, 2, 4, 8),
    "pack": (1, 2, 4, 8),
    "plane_fetch": ("none", "registers", "cp_async", "bulk"),
    "warp_sync": ("block", "neighbours"),
    "z_buffer": ("registers", "shared"),
    "overread": (0, 1),
    "chunk_schedule": ("uniform", "tapered"),
    "register_limit": ("none", "2-blocks"),
    "launch": ("call", "graph", "dependent"),
}
_OF_FLAT_TILES: Mapping[str, tuple[Any, ...]] = {
    **{name: _OF_TILES[name] for name in _OF_TILES if name not in ("rows", "warp_sync", "z_buffer", "chunk_schedule")},
    "lattice": ("d2q9",),
    "collision": tuple(name for name in COLLISIONS if collides(name, "d2q9")),
    "block": ("32x1x1", "32x2x1", "32x4x1"),
    "steps": tuple(range(1, 9)),
}
TILES = {3: _OF_TILES, 2: _OF_FLAT_TILES}
"""What varies in them, by the dimensions of the lattice."""
_OF_ROOM = ("block", "steps", "rows", "cells_per_thread", "z_buffer", "plane_fetch")
"""Knobs by which a tile gets room for its halo, or finds room on chip: what to change first."""
_MOST_STAGES = 72
"""Cells of a thread times steps: beyond it a text is so long that it takes minutes to compile."""


@once
def of_tiles(dimensions: int, seed: int = 1) -> Covering:
    """Kernels of temporal blocking: each of `_wanted` that these values have, and every pair that is legal."""
    draw, values = random.Random(seed), TILES[dimensions]
    wanted = [point for point in _wanted(draw) if point["lattice"] in values["lattice"]]
    rules = Choices(cuda.TemporalBlocking, values, (_is_too_long, _is_too_wide, _has_no_room), ROOMY)
    found = covering_array(paired(values), _Near(rules, values, draw), wanted)
    samples = (forced(sample_of(cuda.TemporalBlocking, point)) for point in found.points)
    return Covering.of_family(cuda.TemporalBlocking.family, samples, found)


class _Near:
    """Finds legal points near those that it knows. Where chance finds none, a search does, or proves that none is."""

    def __init__(self, rules: Choices, values: Mapping[str, tuple[Any, ...]], draw: random.Random) -> None:
        self._rules, self._values, self._draw = rules, values, draw
        self._glance, self._search = Search(rules, MOST_POINTS // 50), Search(rules, MOST_POINTS)
        self._known: list[Point] = []

    def __call__(self, given: Point) -> Iterator[Point | Missing]:
        """A few with these values, or one reason."""
        found = self._several(given, _CANDIDATES // 2) if self._known else []
        if not found:
            soon = decided(self._glance, given, self._drawn_near(1.0), self._draw)
            found = [soon] if not isinstance(soon, Missing) or soon.proved else self._several(given, _TRIES)
        found = found or [decided(self._search, given, self._drawn_near(1.0), self._draw)]
        self._known += [point for point in found if not isinstance(point, Missing)]
        yield from found

    def _several(self, given: Point, tries: int) -> list[Point | Missing]:
        return [point for _ in range(tries) if (point := self._drawn(given))]

    def _drawn(self, given: Point) -> Point | None:
        """One whose broken rules were mended, a knob at a time that they look at."""
        wished = self._drawn_near(self._draw.choice((0.5, 0.8)))
        for _ in range(_REPAIRS):
            point = self._rules.completed(given, wished)
            conflict = self._rules.conflict(given, point)
            if conflict is None:
                return point
            free = sorted(conflict.axes - given.keys())
            if not free:
                return None
            axis = self._draw.choice([name for name in free if name in _OF_ROOM] or free)
            wished[axis] = self._draw.choice(self._values[axis])
        return None

    def _drawn_near(self, share: float) -> Point:
        """A known point, of which that share of the values stays."""
        near = (
            self._draw.choice(self._known) if self._known else {name: value[0] for name, value in self._values.items()}
        )
        return {
            name: near[name] if self._draw.random() < share else self._draw.choice(choice)
            for name, choice in self._values.items()
        }


def paired(values: Mapping[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """All knobs of tiles but the block, which follows from the others: a halo has to fit, and shared memory to do."""
    return {name: choice for name, choice in values.items() if name != "block"}


def _wanted(draw: random.Random) -> Iterator[Point]:
    """Moments and populations, each: every storage and lattice, every flow with walls or solid cells, by both flags.

    Populations with every collision and with faces that are no walls, too.
    """
    moments = {"representation": "moments", "collision": "regularised", "flow": "box"}
    for lattice, storage, layout in product(LATTICES, ("fp64", "fp32", "fp16s", "bf16"), ("soa", "rows")):
        yield {**moments, "lattice": lattice, "storage": storage, "layout": layout}
    several = {"representation": "populations", "flow": "box"}
    relaxing = [(name, lattice) for name, lattice in product(COLLISIONS, LATTICES) if collides(name, lattice)]
    storages = ("fp64", "fp32", "fp16s", "fp16c", "bf16")
    for n, (name, lattice) in enumerate(relaxing):
        for storage in (storages[n % 5], storages[(n + 2) % 5]):
            yield {**several, "collision": name, "lattice": lattice, "storage": storage}
    walls = [name for name in _OF_TILES["flow"] if name != "box"]
    for lattice, flow, flags in product(LATTICES, walls, ("compiled", "memory")):
        if flags == "compiled" and flow in ("solids", "rocks"):
            continue  # solid cells are known by words alone
        name = draw.choice([one for one in COLLISIONS if collides(one, lattice)])
        if flow in WALLED_OR_PERIODIC:
            yield {**moments, "lattice": lattice, "flow": flow, "flags": flags}
        yield {**several, "collision": name, "lattice": lattice, "flow": flow, "flags": flags}


def _is_too_long(case: Case, config: cuda.TemporalBlocking, limits: Limits) -> str | None:
    stages = config.steps * config.rows * config.cells_per_thread
    return f"steps x rows x cells_per_thread {stages}: too long to be compiled" if stages > _MOST_STAGES else None


def _is_too_wide(case: Case, config: cuda.TemporalBlocking, limits: Limits) -> str | None:
    """What depends on the fewest choices, said before all that they are part of."""
    width = config.cells_per_thread * config.stored.bytes
    if width > 16 or width * config.pack > 32:
        return (
            f"cells_per_thread {config.cells_per_thread} x {config.stored.bytes} bytes x pack {config.pack}: too wide"
        )
    return None


def _has_no_room(case: Case, config: cuda.TemporalBlocking, limits: Limits) -> str | None:
    """What is true of the simplest kernel with such a tile: said first, since it depends on few choices."""
    tile = (config.block, config.steps, config.rows, config.cells_per_thread)
    return _why_no_room(case.lattice, *tile, limits.shared_bytes_per_block)


@cache
def _why_no_room(lattice: str, block: Any, steps: int, rows: int, cells: int, shared_bytes: int) -> str | None:
    case = case_of("box", lattice, "regularised")
    plain = cuda.TemporalBlocking(
        representation="moments", block=block, steps=steps, rows=rows, cells_per_thread=cells, plane_fetch="none"
    )
    limits = replace(LIMITS, shared_bytes_per_block=shared_bytes)
    reasons = (rule(case, plain, limits) for rule in (temporal_blocking_rules._tile, temporal_blocking_rules._on_chip))
    return next(filter(None, reasons), None)


def forced(sample: Sample) -> Sample:
    """In a box a force, along z, too, where there is one."""
    case, config = sample
    if case.flow != "box":
        return sample
    return replace(case, force=(1e-3, -5e-4, 2e-4 * (case.stencil.dimensions == 3))), config
