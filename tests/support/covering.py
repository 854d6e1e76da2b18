"""What a conformance run checks: every pair of choices that the catalogue allows, in as few kernels as chance gives.

Parts: every scheme with every layout and lattice; every collision operator with every lattice and precision on two
schemes; kernels that march over tiles, of moments and of several steps per launch, both without and with walls, filled
up to pairwise covering arrays of their axes; kernels that stay on chip; tiles of moments that leave at their faces what
crosses them; and a pairwise covering array of all other axes, cases included. Deterministic: the same seed, the same
list. What is left out is illegal, and proved to be by the rules that stand against it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

from lbmtune.catalogue.axes import completed, neutral

from lbmtune.catalogue.config import FETCHES, MEETINGS, CudaConfig, defaults, from_flat
from lbmtune.catalogue.families.cuda.temporal_blocking_rules import why_no_march
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.problem.case import COLLISIONS, Case, collides
from lbmtune.lattice import LATTICES
from tests.support.choices import FLOWS, LIMITS, ROOMY, Choices, Sample, case_of, sample_of, values_of
from tests.support.configs import old_cuda
from tests.support.directed import Conflict, Point, Search, UndecidedError

Values = tuple[tuple[str, Any], ...]
_CANDIDATES, _TRIES, _REPAIRS, _MOST_POINTS = 6, 20, 25, 20_000


class Missing(NamedTuple):
    """What has no sample: values that no legal configuration has together, with the reason.

    proved: whether that has been shown for all values of the other axes, or for as many points as were looked at.
    """

    values: Values
    reason: str
    proved: bool = True


@dataclass(frozen=True)
class Covering:
    """samples: what to check, each once; pairs: how many pairs of choices they cover; missing: what they cannot."""

    samples: tuple[Sample, ...]
    missing: tuple[Missing, ...]
    pairs: int


def with_patches(backend: str, seed: int = 1) -> Iterator[Sample | Missing]:
    """Every scheme x addressing x lattice with patches and SoA, by words in memory and, on a GPU, worked out."""
    search = _search(backend)
    values, known = values_of(backend), [{"addressing": "direct", "flags": "memory"}, {"addressing": "indirect"}]
    known += [{"addressing": "direct", "flags": "compiled"}] * (backend == "cuda")
    for scheme, how, lattice in product(values["scheme"], known, LATTICES):
        point = {"scheme": scheme, **how, "lattice": lattice, "flow": "patched", "layout": "soa"}
        yield _legal(backend, search, {**point, "collision": "bgk", "storage": "fp64", "compute": "fp64"})


@cache
def schemes_layouts_lattices(backend: str) -> tuple[Sample | Missing, ...]:
    """Every scheme x layout x addressing x lattice in double precision, with walls, moving walls and a force."""
    names = ("scheme", "layout", "addressing", "lattice")
    values, search = values_of(backend), _search(backend)
    found = []
    for chosen in product(*(values.get(name, ("direct",)) for name in names)):
        point = {name: value for name, value in zip(names, chosen, strict=True) if name in values}
        precision = {"storage": "fp64", "compute": "fp64"}
        found.append(_legal(backend, search, {**point, "flow": "grinder", "collision": "bgk", **precision}))
    return tuple(found)


def collisions_precisions(backend: str) -> Iterator[Sample | Missing]:
    """Every collision operator x lattice x precision on pull and AA, SoA."""
    values, search = values_of(backend), _search(backend)
    names = ("scheme", "collision", "lattice", "storage", "compute")
    for chosen in product(("pull", "aa"), *(values[name] for name in names[1:])):
        point = dict(zip(names, chosen, strict=True))
        yield _legal(backend, search, {**point, "layout": "soa", "flow": "grinder"})


def pairwise(backend: str, seed: int = 1) -> Covering:
    """A covering array: every pair of values of two axes that some legal point has."""
    draw, search, values = random.Random(seed), _search(backend), values_of(backend)

    def find(given: Point) -> Iterator[Point | Missing]:
        for _ in range(_CANDIDATES):
            yield _found(backend, search, given, draw)

    found = _array(values, find)
    samples = tuple(dict.fromkeys(sample_of(backend, point) for point in found.points))
    return Covering(samples, found.missing, found.pairs)


class _Array(NamedTuple):
    """Points that have every pair of values but those that are missing."""

    points: list[Point]
    missing: tuple[Missing, ...]
    pairs: int


def _array(
    values: Mapping[str, Any], find: Callable[[Point], Iterator[Point | Missing]], wanted: Iterable[Point] = ()
) -> _Array:
    """A covering array of some axes. find: points with values given, or why there are none; wanted: first."""
    left = pairs_among(values)
    total, points, missing = len(left), list[Point](), list[Missing]()

    def add(given: Point) -> Missing | None:
        """The point that has the most of what is left."""
        found = find(given)
        first = next(found)
        if isinstance(first, Missing):
            return first
        legal = (first, *(point for point in found if not isinstance(point, Missing)))
        best = max(legal, key=lambda point: len(_pairs(point) & left))
        left.difference_update(_pairs(best))
        points.append(best)
        return None

    for given in wanted:
        assert add(given) is None, given
    for pair in sorted(left, key=repr):
        if pair in left and (reason := add(dict(pair))):
            missing.append(reason)
            left.discard(pair)
    return _Array(points, tuple(missing), total - len(missing))


def pairs_of(backend: str) -> set[Values]:
    """Every pair of values of two axes."""
    return pairs_among(values_of(backend))


def pairs_among(values: Mapping[str, tuple[Any, ...]]) -> set[Values]:
    """Every pair of values of two of these axes."""
    return {
        ((one, a), (other, b))
        for one, other in combinations(sorted(values), 2)
        for a, b in product(values[one], values[other])
    }


_OF_WALLS = tuple(name for name in FLOWS if name not in ("opened", "slipping", "patched"))
_OF_TILES: Mapping[str, tuple[Any, ...]] = {
    "flow": (*_OF_WALLS, "opened", "slipping"),
    "lattice": tuple(name for name in LATTICES if name != "d2q9"),
    "collision": tuple(COLLISIONS),
    "representation": ("moments", "populations"),
    "scheme": ("pull", "push"),
    "storage": ("fp64", "fp32", "fp16s", "fp16c", "bf16"),
    "layout": ("soa", "rows"),
    "flags": ("compiled", "memory"),
    "block": ("32x2x1", "32x3x1", "32x8x1", "32x12x1"),
    "march": (1, 3, 5),
    "steps": (1, 2, 3, 4),
    "rows": (1, 2, 3, 5),
    "cells_per_thread": (1, 2, 4, 8),
    "pack": (1, 2, 4, 8),
    "prefetch": (0, 1, 2, 3),
    "barrier": ("block", "neighbours"),
    "pending": ("registers", "shared"),
    "beyond": (0, 1),
    "chunks": ("even", "falling"),
    "min_blocks": (0, 2),
    "launch": ("call", "graph", "dependent"),
}
_OF_FLAT_TILES: Mapping[str, tuple[Any, ...]] = {
    **{name: _OF_TILES[name] for name in _OF_TILES if name not in ("rows", "barrier", "pending", "chunks")},
    "lattice": ("d2q9",),
    "collision": tuple(name for name in COLLISIONS if collides(name, "d2q9")),
    "block": ("32x1x1", "32x2x1", "32x4x1"),
    "steps": tuple(range(1, 9)),
}
TILES = {3: _OF_TILES, 2: _OF_FLAT_TILES}
"""What varies in kernels that march over tiles, by the dimensions of the lattice."""
_OF_ROOM = ("block", "steps", "rows", "cells_per_thread", "pending", "prefetch")
"""Axes by which a tile gets room for its halo, or finds room on chip: what to change first."""
_MOST_STAGES = 72
"""Cells of a thread times steps: beyond it a text is so long that it takes minutes to compile."""


_OF_PIPELINES: Mapping[str, tuple[Any, ...]] = {
    "steps": (1, 2, 3, 5),
    "tile_x": (16, 32, 64),
    "tile_y": (2, 5, 8),
    "tile_z": (1, 3),
    "threads": (1, 2),
    "row_offset": (0, 16),
    "row_padding": (0, 15),
    "vector_bits": (256, 512),
}


def of_pipelines(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Kernels of moments on a CPU: every storage, lattice and layout with a seeded choice of what else they have.

    And every flow with walls or solid cells.
    """
    yield from _pipelines(seed) if backend == "cpu" else ()


def _pipelines(seed: int) -> Iterator[Sample]:
    draw = random.Random(seed)
    storages = [("fp64", "fp64"), ("fp32", "fp32"), ("fp16s", "fp32"), ("bf16", "fp32")]
    for lattice, (storage, compute), layout in product(LATTICES, storages, ("soa", "rows")):
        case = replace(case_of("box", lattice, "regularised"), force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))
        chosen = {name: draw.choice(values) for name, values in _OF_PIPELINES.items()}
        fixed = {"backend": "cpu", "representation": "moments", "loop": "tile", "layout": layout}
        ahead = {"prefetch_rows": draw.choice((0, 1))} if layout == "soa" and chosen["steps"] > 1 else {}
        config = from_flat(completed({**fixed, **chosen, **ahead, "storage": storage, "compute": compute}, LIMITS))
        assert broken(case, config, LIMITS) is None
        yield case, config
    walls = [name for name in _OF_WALLS if name != "box"]
    for n, (flow, storage) in enumerate(zip(walls, storages * 2, strict=False)):
        case = case_of(flow, tuple(LATTICES)[n % len(LATTICES)], "regularised")
        chosen = {name: draw.choice(values) for name, values in _OF_PIPELINES.items()}
        fixed = {"backend": "cpu", "representation": "moments", "flags": "memory" if case.geometry else "compiled"}
        config = from_flat(completed({**fixed, **chosen, "storage": storage[0], "compute": storage[1]}, LIMITS))
        assert broken(case, config, LIMITS) is None
        yield case, config


def of_tiles(dimensions: int, seed: int = 1) -> Covering:
    """Kernels that march over tiles: each of `_marches` that these values have, and every pair that is legal."""
    return _of_tiles(dimensions, seed)


@cache
def _of_tiles(dimensions: int, seed: int) -> Covering:
    draw, values = random.Random(seed), TILES[dimensions]
    wanted = [point for point in _marches(draw) if point["lattice"] in values["lattice"]]
    rules = Choices("cuda", values, (_is_no_march, _is_too_long, _is_too_wide, _has_no_room), ROOMY)
    found = _array(paired(values), _Near(rules, values, draw), wanted)
    samples = dict.fromkeys(_forced(sample_of("cuda", point)) for point in found.points)
    return Covering(tuple(samples), found.missing, found.pairs)


class _Near:
    """Finds legal points near those that it knows. Where chance finds none, a search does, or proves that none is."""

    def __init__(self, rules: Choices, values: Mapping[str, tuple[Any, ...]], draw: random.Random) -> None:
        self._rules, self._values, self._draw = rules, values, draw
        self._glance, self._search = Search(rules, _MOST_POINTS // 50), Search(rules, _MOST_POINTS)
        self._known: list[Point] = []

    def __call__(self, given: Point) -> Iterator[Point | Missing]:
        """A few with these values, or one reason."""
        found = self._several(given, _CANDIDATES // 2) if self._known else []
        if not found:
            soon = _decided(self._glance, given, self._drawn_near(1.0), self._draw)
            found = [soon] if not isinstance(soon, Missing) or soon.proved else self._several(given, _TRIES)
        found = found or [_decided(self._search, given, self._drawn_near(1.0), self._draw)]
        self._known += [point for point in found if not isinstance(point, Missing)]
        yield from found

    def _several(self, given: Point, tries: int) -> list[Point | Missing]:
        return [point for _ in range(tries) if (point := self._drawn(given))]

    def _drawn(self, given: Point) -> Point | None:
        """One whose broken rules were mended, an axis at a time that they look at."""
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
    """All axes of tiles but the block, which follows from the others: a halo has to fit, and shared memory to do."""
    return {name: choice for name, choice in values.items() if name != "block"}


def _marches(draw: random.Random) -> Iterator[Point]:
    """Moments and populations, each: every storage and lattice, every flow with walls or solid cells, by both flags.

    Populations with every collision and with faces that are no walls, too.
    """
    moments = {"representation": "moments", "collision": "regularised", "flow": "box"}
    for lattice, storage, layout in product(LATTICES, ("fp64", "fp32", "fp16s", "bf16"), ("soa", "rows")):
        yield {**moments, "lattice": lattice, "storage": storage, "layout": layout}
    several = {"representation": "populations", "scheme": "push", "flow": "box"}
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
        if flow in _OF_WALLS:
            yield {**moments, "lattice": lattice, "flow": flow, "flags": flags}
        yield {**several, "collision": name, "lattice": lattice, "flow": flow, "flags": flags}


def _is_no_march(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    if config.marches:
        return None
    return f"representation {config.representation} with steps {config.steps}: no kernel of tiles"


def _is_too_long(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    stages = config.steps * config.rows * config.cells_per_thread
    return f"steps x rows x cells_per_thread {stages}: too long to be compiled" if stages > _MOST_STAGES else None


def _is_too_wide(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """What depends on the fewest choices, said before all that they are part of."""
    width = config.cells_per_thread * config.stored.bytes
    if width > 16 or width * config.pack > 32:
        return (
            f"cells_per_thread {config.cells_per_thread} x {config.stored.bytes} bytes x pack {config.pack}: too wide"
        )
    return None


def _has_no_room(case: Case, config: CudaConfig, limits: Limits) -> str | None:
    """What is true of the simplest kernel with such a tile: said first, since it depends on few choices."""
    tile = (config.block, config.steps, config.rows, config.cells_per_thread)
    return _why_no_room(case.lattice, *tile, limits.shared_bytes_per_block)


@cache
def _why_no_room(lattice: str, block: Any, steps: int, rows: int, cells: int, shared_bytes: int) -> str | None:
    tile = {"block": block, "steps": steps, "rows": rows, "cells_per_thread": cells}
    plain = old_cuda(representation="moments", layout="rows", **tile)
    return why_no_march(case_of("box", lattice, "regularised"), plain, shared_bytes)


def _forced(sample: Sample) -> Sample:
    """In a box a force, along z, too, where there is one."""
    case, config = sample
    if case.flow != "box":
        return sample
    return replace(case, force=(1e-3, -5e-4, 2e-4 * (case.stencil.dimensions == 3))), config


def on_chip(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Kernels that keep populations on chip: every storage, lattice and flow, with a seeded choice of the others."""
    draw = random.Random(seed)
    for lattice, storage, flow in product(LATTICES, STORAGES if backend == "cuda" else (), _OF_WALLS):
        solid = flow in ("solids", "rocks")
        point = {"launch": "resident", "storage": storage, "march": 1 if lattice == "d2q9" else draw.choice((1, 2, 3))}
        point |= {"layout": draw.choice(("rows", "soa", "aosoa", "aos")), "min_blocks": draw.choice((0, 2))}
        point["meeting"] = draw.choice(MEETINGS)
        point |= {"block": f"8x{draw.choice((1, 2, 3))}x1", "width": 8}
        point |= {"width": 1} if neutral("width", point) else {}
        if solid or (flow != "box" and draw.random() < 0.3):
            point["flags"] = "memory"
        case = case_of(flow, lattice, draw.choice([one for one in COLLISIONS if collides(one, lattice)]))
        config = from_flat(completed({"backend": backend, **point}, LIMITS))
        yield replace(case, domain=(8, 6, 1 if lattice == "d2q9" else 6)), config


_OF_TILE_FACES: Mapping[str, tuple[str, ...]] = {
    "d2q9": ("fp32",),
    "d3q19": ("fp64", "fp32", "fp16s", "bf16"),
    "d3q27": ("fp64", "bf16"),
}


def of_tile_faces(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Tiles of moments that leave at their faces what crosses them: some storages of every lattice, in turn all flows.

    With a seeded choice of what else they have.
    """
    draw = random.Random(seed)
    kinds = [(flow, flags) for flow in _OF_WALLS for flags in ("memory", "compiled") if _known_by(flow, flags)]
    draw.shuffle(kinds)
    found = [(lattice, storage) for lattice, storages in _OF_TILE_FACES.items() for storage in storages]
    for (lattice, storage), (flow, flags) in zip(found if backend == "cuda" else (), kinds, strict=False):
        flat = lattice == "d2q9"
        block = draw.choice(("8x2x1", "16x2x1", "4x4x1") if flat else ("8x2x2", "16x1x3", "4x4x1"))
        point = {"representation": "moments", "halo": "faces", "block": block, "storage": storage, "flags": flags}
        point |= {"layout": draw.choice(("soa", "rows", "aos", "tiled", "tiled-cells"))}
        point |= {"launch": draw.choice(("call", "graph", "dependent")), "min_blocks": draw.choice((0, 2))}
        tiled = point["layout"].startswith("tiled")
        point |= {"layout_tile": "8x2x1" if flat else draw.choice(("16x1x3", "8x4x2"))} if tiled else {}
        point |= {"fetch": draw.choice(FETCHES)} if storage in ("fp64", "fp32") else {}
        config = from_flat(completed({"backend": backend, **point}, LIMITS))
        yield _forced((case_of(flow, lattice, "regularised"), config))


def _known_by(flow: str, flags: str) -> bool:
    """Solid cells are known by words alone, and words tell of walls or solid cells."""
    return flow not in ("solids", "rocks") if flags == "compiled" else flow != "box"


_MOMENTS_ON_CHIP: Mapping[str, Sequence[Any]] = {
    "cells_per_thread": (1, 2),
    "rows": (1, 2),
    "held": (0, 1),
    "meeting": MEETINGS,
    "min_blocks": (0, 2),
    "layout": ("soa", "rows"),
}


def moments_on_chip(backend: str, seed: int = 2) -> Iterator[Sample]:
    """Kernels that keep moments there: every storage and lattice, with a seeded choice of the others."""
    draw = random.Random(seed)
    storages = [("fp64", "fp64"), ("fp32", "fp32"), ("fp16s", "fp32"), ("bf16", "fp32")]
    for lattice, (storage, compute) in product(LATTICES, storages if backend == "cuda" else ()):
        flat, flow = lattice == "d2q9", draw.choice(("box", "grinder", "solids"))
        point: dict[str, Any] = {name: draw.choice(values) for name, values in _MOMENTS_ON_CHIP.items()}
        point |= {"launch": "resident", "representation": "moments", "block": "16x2x1", "march": 2}
        point |= {"rows": 1} if flat else {}
        point |= {"flags": "memory"} if flow == "solids" else {}
        config = from_flat(completed({"backend": backend, **point, "storage": storage, "compute": compute}, LIMITS))
        domain = (16 * point["cells_per_thread"], 8, 1 if flat else 8)
        yield replace(case_of(flow, lattice, "regularised"), domain=domain), config


def everything(backend: str, seed: int = 1) -> Covering:
    """All parts, each sample once."""
    covering = pairwise(backend, seed)
    marches = [one for dimensions in (TILES if backend == "cuda" else ()) for one in of_tiles(dimensions, seed).samples]
    parts = (
        *(schemes_layouts_lattices, collisions_precisions, with_patches, of_pipelines),
        *(on_chip, of_tile_faces, moments_on_chip),
    )
    found = [one for part in parts for one in part(backend)]
    parted = (one for one in found if not isinstance(one, Missing))
    samples = tuple(dict.fromkeys((*parted, *marches, *covering.samples)))
    having = defaultdict[tuple[str, Any], set[int]](set)
    for number, sample in enumerate(samples):
        for value in point_of(sample).items():
            having[value].add(number)

    def elsewhere(missing: Missing) -> bool:
        """Whether a kernel of another part has what none of the pairwise ones can."""
        return bool(set.intersection(*(having[value] for value in missing.values)))

    missing = dict.fromkeys((*(one for one in found if isinstance(one, Missing)), *covering.missing))
    pairs = covering.pairs + sum(map(elsewhere, covering.missing))
    return Covering(samples, tuple(one for one in missing if not elsewhere(one)), pairs)


def point_of(sample: Sample) -> Point:
    """All choices of a sample."""
    case, config = sample
    return {"flow": case.flow, "lattice": case.lattice, "collision": case.collision, **config.flat()}


def _pairs(point: Point) -> set[Values]:
    return set(combinations(sorted(point.items()), 2))


def _search(backend: str) -> Search:
    return Search(Choices(backend, values_of(backend)), _MOST_POINTS)


def _legal(backend: str, search: Search, wanted: Point) -> Sample | Missing:
    """A legal sample with these values, the others as usual as may be."""
    given = {name: value for name, value in wanted.items() if name in values_of(backend)}
    found = _found(backend, search, given, random.Random(str(sorted(wanted.items()))))
    return found if isinstance(found, Missing) else sample_of(backend, found)


def _found(backend: str, search: Search, given: Point, draw: random.Random) -> Point | Missing:
    """A legal point with some values given, near one that is drawn, half of the other values of which are usual."""
    usual = defaults(backend)
    wished = {
        name: usual[name] if usual.get(name) in values and draw.random() < 0.6 else draw.choice(values)
        for name, values in values_of(backend).items()
    }
    return _decided(search, given, wished, draw)


def _decided(search: Search, given: Point, wished: Point, draw: random.Random) -> Point | Missing:
    try:
        found = search.legal(given, wished, draw)
    except UndecidedError:
        return Missing(tuple(given.items()), f"none of {_MOST_POINTS:,} points is legal", proved=False)
    if isinstance(found, Conflict):
        return Missing(tuple(one for one in given.items() if one[0] in found.axes), found.told())
    return found
