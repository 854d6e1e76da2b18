"""Pairs of choices that a conformance run covers: all that are allowed, in as few kernels as chance gives.

Parts: every scheme with every layout and lattice; every collision operator with every lattice and precision on two
schemes; patches; of each family whose domain does not follow from the configuration a pairwise covering array of its
knobs, cases included; temporal blocking likewise, in two and in three dimensions; and seeded kernels of the other
families. Deterministic: the same seed, the same list. What is left out is illegal, and proved to be by the rules that
stand against it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

from lbmtune.catalogue.config import DEFAULT_FAMILY, FAMILIES, KernelConfig, cpu, cuda, defaults
from lbmtune.lattice import LATTICES
from tests.support.conformance.choices import PAIRED, Choices, Sample, sample_of, values_of
from tests.support.conformance.directed import Point, Search
from tests.support.conformance.parts.arrays import (
    MOST_POINTS,
    Covering,
    Missing,
    Values,
    covering_array,
    decided,
    pairs_among,
)
from tests.support.conformance.parts.seeded import SEEDED
from tests.support.conformance.parts.tiles import TILES, of_tiles, paired
from tests.support.once import once

__all__ = [
    "TILES",
    "Covering",
    "Missing",
    "Values",
    "everything",
    "of_tiles",
    "paired",
    "pairs_among",
    "pairwise",
    "point_of",
]

_CANDIDATES = 6
_BY_LATTICE: dict[str, tuple[type[KernelConfig], ...]] = {
    "cuda": (cuda.Direct, cuda.Sparse),
    "cpu": (cpu.Direct, cpu.Sparse),
}
"""The families that have every scheme and layout that may be."""
_WITH_PATCHES: dict[str, tuple[tuple[type[KernelConfig], Point], ...]] = {
    "cuda": ((cuda.Direct, {"flags": "memory"}), (cuda.Sparse, {}), (cuda.Direct, {"flags": "compiled"})),
    "cpu": ((cpu.Direct, {"flags": "memory"}), (cpu.Sparse, {})),
}
_DOUBLE = {"storage": "fp64", "compute": "fp64"}


def with_patches(backend: str) -> Iterator[Sample | Missing]:
    """Every scheme x lattice with patches and SoA, by words in memory, by a list and, on a GPU, worked out."""
    for record, known in _WITH_PATCHES[backend]:
        search = _search(record)
        for scheme, lattice in product(values_of(record)["scheme"], LATTICES):
            point = {"scheme": scheme, **known, "lattice": lattice, "flow": "patched", "layout": "soa"}
            yield _legal(record, search, {**point, "collision": "bgk", **_DOUBLE})


@once
def schemes_layouts_lattices(backend: str) -> tuple[Sample | Missing, ...]:
    """Every scheme x layout x lattice of both addressings in double precision, with moving walls and a force."""
    names, found = ("scheme", "layout", "lattice"), list[Sample | Missing]()
    for record in _BY_LATTICE[backend]:
        search = _search(record)
        for chosen in product(*(values_of(record)[name] for name in names)):
            point = dict(zip(names, chosen, strict=True))
            found.append(_legal(record, search, {**point, "flow": "grinder", "collision": "bgk", **_DOUBLE}))
    return tuple(found)


def collisions_precisions(backend: str) -> Iterator[Sample | Missing]:
    """Every collision operator x lattice x precision on pull and AA, SoA."""
    record = FAMILIES[backend][DEFAULT_FAMILY]
    values, search = values_of(record), _search(record)
    names = ("scheme", "collision", "lattice", "storage", "compute")
    for chosen in product(("pull", "aa"), *(values[name] for name in names[1:])):
        point = dict(zip(names, chosen, strict=True))
        yield _legal(record, search, {**point, "layout": "soa", "flow": "grinder"})


@once
def pairwise(record: type[KernelConfig], seed: int = 1) -> Covering:
    """A covering array of a family: every pair of values of two knobs that some legal point has."""
    draw, search, values = random.Random(seed), _search(record), values_of(record)

    def find(given: Point) -> Iterator[Point | Missing]:
        for _ in range(_CANDIDATES):
            yield _found(record, search, given, draw)

    found = covering_array(values, find)
    return Covering.of_family(record.family, (sample_of(record, point) for point in found.points), found)


@once
def everything(backend: str, seed: int = 1) -> Covering:
    """All parts, each sample once."""
    arrays = [pairwise(record, seed) for record in PAIRED[backend]]
    arrays += [of_tiles(dimensions, seed) for dimensions in (TILES if backend == "cuda" else ())]
    parts = (schemes_layouts_lattices, collisions_precisions, with_patches)
    found = [*(one for part in parts for one in part(backend)), *(one for part in SEEDED[backend] for one in part())]
    samples = [one for one in found if not isinstance(one, Missing)]
    samples += [sample for array in arrays for sample in array.samples]
    missing = [one for one in found if isinstance(one, Missing)]
    missing += [one for array in arrays for one in array.missing]
    pairs = sum(array.pairs for array in arrays)
    return Covering(tuple(dict.fromkeys(samples)), tuple(dict.fromkeys(missing)), pairs)


def point_of(sample: Sample) -> dict[str, Any]:
    """All choices of a sample."""
    case, config = sample
    return {"flow": case.flow, "lattice": case.lattice, "collision": case.collision, **config.flat()}


def _search(record: type[KernelConfig]) -> Search:
    return Search(Choices(record, values_of(record)), MOST_POINTS)


def _legal(record: type[KernelConfig], search: Search, wanted: Point) -> Sample | Missing:
    """A legal sample with these values, the others as usual as may be."""
    given = {name: value for name, value in wanted.items() if name in values_of(record)}
    found = _found(record, search, given, random.Random(str(sorted(wanted.items()))))
    return found._replace(family=record.family) if isinstance(found, Missing) else sample_of(record, found)


def _found(record: type[KernelConfig], search: Search, given: Point, draw: random.Random) -> Point | Missing:
    """A legal point with some values given, near one that is drawn, half of the other values of which are usual."""
    usual = defaults(record)
    wished = {
        name: usual[name] if usual.get(name) in values and draw.random() < 0.6 else draw.choice(values)
        for name, values in values_of(record).items()
    }
    return decided(search, given, wished, draw)
