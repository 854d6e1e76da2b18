"""What a conformance run checks: every pair of choices that the catalogue allows, in as few kernels as chance gives.

Seven parts: every scheme with every layout and lattice; every collision operator with every lattice and precision on
two schemes; kernels of moments and kernels of several steps per launch, both without and with walls; kernels that stay
on chip; and a pairwise covering array of all other axes, cases included. Deterministic: the same seed, the same list.
What is left out is illegal, and proved to be by the rules that stand against it.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

from choices import FLOWS, LIMITS, Choices, Sample, case_of, sample_of, values_of
from directed import Conflict, Point, Search, UndecidedError
from lbmtune.catalogue.axes import completed, neutral
from lbmtune.catalogue.case import COLLISIONS, Case, collides
from lbmtune.catalogue.config import MEETINGS, defaults, from_flat
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.rules import broken
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES

Values = tuple[tuple[str, Any], ...]
_TRIES, _CANDIDATES, _MOST_POINTS = 200, 6, 20_000


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


_OF_WHOLE_FACES = tuple(name for name in FLOWS if name not in ("opened", "slipping", "patched"))


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
    draw, search = random.Random(seed), _search(backend)
    left = pairs_of(backend)
    total, samples, missing = len(left), list[Sample](), list[Missing]()
    for pair in sorted(left, key=repr):
        if pair not in left:
            continue
        found = [_found(backend, search, dict(pair), draw)]
        if isinstance(found[0], Missing):
            missing.append(found[0])
            left.discard(pair)
            continue
        found += [_found(backend, search, dict(pair), draw) for _ in range(1, _CANDIDATES)]
        legal = (point for point in found if not isinstance(point, Missing))
        best = max(legal, key=lambda point: len(_pairs(point) & left))
        left -= _pairs(best)
        samples.append(sample_of(backend, best))
    return Covering(tuple(dict.fromkeys(samples)), tuple(missing), total - len(missing))


def pairs_of(backend: str) -> set[Values]:
    """Every pair of values of two axes."""
    values = values_of(backend)
    return {
        ((one, a), (other, b))
        for one, other in combinations(sorted(values), 2)
        for a, b in product(values[one], values[other])
    }


_OF_TILES: Mapping[str, tuple[Any, ...]] = {
    "steps": (1, 2, 3),
    "rows": (1, 2),
    "cells_per_thread": (1, 2),
    "pack": (1, 2, 4),
    "prefetch": (0, 1, 2, 3),
    "barrier": ("block", "neighbours"),
    "pending": ("registers", "shared"),
    "beyond": (0, 1),
    "chunks": ("even", "falling"),
}


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


def of_moments(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Kernels of moments: every storage and lattice with a seeded choice of what else they have, each pair often."""
    if backend == "cpu":
        yield from _pipelines(seed)
        return
    draw = random.Random(seed)
    storages = [("fp64", "fp64"), ("fp32", "fp32"), ("fp16s", "fp32"), ("bf16", "fp32")]
    for lattice, (storage, compute), layout in product(LATTICES, storages, ("soa", "rows", "rows")):
        case = replace(case_of("box", lattice, "regularised"), force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))
        yield from _march(backend, case, {"layout": layout, "storage": storage, "compute": compute}, draw)


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


def of_moments_with_walls(backend: str, seed: int = 1) -> Iterator[Sample]:
    """The same on every flow with walls or solid cells, by faces and by words."""
    draw = random.Random(seed)
    flows = [name for name in _OF_WHOLE_FACES if name != "box"]
    for lattice, flow, flags in product(LATTICES, flows, ("compiled", "memory")):
        fixed = {"flags": flags, "layout": draw.choice(("soa", "rows")), "storage": draw.choice(("fp32", "fp16s"))}
        yield from _march(backend, case_of(flow, lattice, "regularised"), fixed, draw)


def of_several_steps(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Kernels of populations with several steps per launch: every collision, lattice and storage, each pair of them."""
    draw = random.Random(seed)
    collisions = [(name, lattice) for name, lattice in product(COLLISIONS, LATTICES) if _relaxes(name, lattice)]
    storages = ("fp64", "fp32", "fp16s", "fp16c", "bf16")
    for n, (name, lattice) in enumerate(collisions):
        case = replace(case_of("box", lattice, name), force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))
        for storage in (storages[n % 5], storages[(n + 2) % 5]):
            fixed = {"scheme": "push", "layout": draw.choice(("soa", "rows")), "storage": storage}
            fixed |= {"representation": "populations", "steps": draw.choice((2, 3))}
            fixed |= {"compute": "fp64" if storage == "fp64" else "fp32"}
            yield from _march(backend, case, fixed, draw)


def of_several_steps_with_walls(backend: str, seed: int = 1) -> Iterator[Sample]:
    """The same on every flow with walls or solid cells, by faces and by words."""
    draw = random.Random(seed)
    flows = [name for name in _OF_WHOLE_FACES if name != "box"]
    for lattice, flow, flags in product(LATTICES, flows, ("compiled", "memory")):
        name = draw.choice([one for one in COLLISIONS if _relaxes(one, lattice)])
        fixed = {"scheme": "push", "representation": "populations", "steps": draw.choice((2, 3)), "flags": flags}
        fixed |= {"layout": draw.choice(("soa", "rows")), "storage": draw.choice(("fp32", "fp16s"))}
        yield from _march(backend, case_of(flow, lattice, name), fixed, draw)


def _relaxes(collision: str, lattice: str) -> bool:
    try:
        case_of("box", lattice, collision)
    except InputError:
        return False
    return True


def _march(backend: str, case: Case, fixed: Point, draw: random.Random) -> Iterator[Sample]:
    """A legal kernel of tiles with these values, of a draw; none on a CPU, or where no choice of the others helps."""
    flat = case.lattice == "d2q9"
    usual = {"backend": backend, "representation": "moments", "block": "32x2x1" if flat else "32x8x1", "march": 5}
    for _ in range(_TRIES if backend == "cuda" else 0):
        chosen = {name: draw.choice(values) for name, values in _OF_TILES.items()}
        if flat:
            chosen |= {"rows": 1, "steps": draw.choice((1, 3, 6)), "barrier": "block", "pending": "registers"}
        config = from_flat({**usual, **chosen, **fixed})
        if broken(case, config, LIMITS) is None:
            yield case, config
            return


def on_chip(backend: str, seed: int = 1) -> Iterator[Sample]:
    """Kernels that keep populations on chip: every storage, lattice and flow, with a seeded choice of the others."""
    draw = random.Random(seed)
    for lattice, storage, flow in product(LATTICES, STORAGES if backend == "cuda" else (), _OF_WHOLE_FACES):
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


def everything(backend: str, seed: int = 1) -> Covering:
    """All parts, each sample once."""
    covering = pairwise(backend, seed)
    marches = (of_moments, of_moments_with_walls, of_several_steps, of_several_steps_with_walls)
    parts = (schemes_layouts_lattices, collisions_precisions, with_patches, *marches, on_chip)
    found = [one for part in parts for one in part(backend)]
    samples = tuple(dict.fromkeys((*(one for one in found if not isinstance(one, Missing)), *covering.samples)))
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
    return Search(Choices(backend), _MOST_POINTS)


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
    try:
        found = search.legal(given, wished, draw)
    except UndecidedError:
        return Missing(tuple(given.items()), f"none of {_MOST_POINTS:,} points is legal", proved=False)
    if isinstance(found, Conflict):
        return Missing(tuple(one for one in given.items() if one[0] in found.axes), found.told())
    return found
