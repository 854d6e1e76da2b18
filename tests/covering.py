"""What a conformance run checks: every pair of choices that the catalogue allows, in as few kernels as chance gives.

Seven parts: every scheme with every layout and lattice; every collision operator with every lattice and precision on
two schemes; kernels of moments and kernels of several steps per launch, both without and with walls; kernels that stay
on chip; and a pairwise covering array of all other axes, cases included. Deterministic: the same seed, the same list.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product
from typing import Any

from lbmtune.catalogue.axes import AXES, completed, neutral
from lbmtune.catalogue.case import COLLISIONS, Case, box, cavity, channel, collides, pipe
from lbmtune.catalogue.config import MEETINGS, KernelConfig, defaults, from_flat
from lbmtune.catalogue.faces import Face, Faces, Patch
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.rules import Limits, broken
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES

Sample = tuple[Case, KernelConfig]
Point = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]

FLOWS = ("box", "cavity", "channel", "grinder", "solids", "rocks", "opened", "slipping", "patched")
_CASE_AXES: Mapping[str, tuple[Any, ...]] = {
    "flow": FLOWS,
    "lattice": tuple(LATTICES),
    "collision": tuple(COLLISIONS),
}
VALUES: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "cuda": {
        "width": (8, 16),
        "group": (3, 5),
        "layout_tile": ("8x2x1", "16x1x3", "8x4x2"),
        "block": ("8x2x1", "16x2x1", "32x1x1", "64x1x1", "4x4x1", "8x2x2", "16x1x3"),
        "padding": (0, 8),
        "max_registers": (0, 64, 128),
        "min_blocks": (0, 2),
        "march": (1, 3, 5),
        "prefetch": (0, 1, 2, 3),
        "l2_prefetch": (0, 64, 128, 256),
        "prefetch_index": (0, 96),
        "index_bits": (0, 64),
        "launch": ("call", "graph", "dependent"),
    },
    "cpu": {
        "width": (16, 32),
        "group": (3, 5),
        "layout_tile": ("16x2x1", "16x1x3", "32x4x2"),
        "padding": (0, 16),
        "threads": (1, 2),
        "tile_y": (4, 8),
        "tile_z": (1, 3),
        "row_offset": (1, 16),
        "row_padding": (0, 15),
        "prefetch_propagated": (0, 32),
        "prefetch_local": (0, 16),
        "prefetch_index": (0, 64),
        "steps": (1, 2, 3),
        "prefetch_rows": (0, 1),
        "stride": (0, 200_000),
        "far_ends": ("inside", "between"),
    },
}
"""Numbers to try where those that a study searches are too large for a small domain, or only one."""
LIMITS = Limits(
    cores=2,
    shared_bytes_per_block=99 << 10,
    shared_bytes_per_multiprocessor=100 << 10,
    multiprocessors=84,
    cooperative=True,
    dependent=True,
    asynchronous=True,
)
_TRIES, _CANDIDATES = 200, 6
_APART: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "cuda": {
        **{"representation": ("populations",), "steps": (1,), "rows": (1,), "pack": (1,)},
        **{"barrier": ("block",), "pending": ("registers",), "beyond": (0,), "chunks": ("even",)},
        "meeting": ("all",),
    },
    "cpu": {"representation": ("populations",), "tile_x": (0,)},
}
"""Axes of kernels of moments, which have a part of their own: most choices of the others mean nothing there."""


@dataclass(frozen=True)
class Covering:
    """samples: what to check, each once; pairs: how many they cover; illegal: reason -> what it forbids.

    That are further pairs of choices, and whole combinations of the parts that go through all of them.
    """

    samples: tuple[Sample, ...]
    illegal: dict[str, int]
    pairs: int


def values_of(backend: str) -> dict[str, tuple[Any, ...]]:
    """Every axis of a backend and of the case with the values to try. Each must have two at least."""
    found: dict[str, tuple[Any, ...]] = dict(_CASE_AXES)
    for axis in AXES[backend]:
        if axis.name in _APART[backend]:
            continue
        found[axis.name] = VALUES[backend].get(axis.name) or axis.names or axis.values
    lonely = [name for name, values in found.items() if len(values) < 2]
    assert not lonely, f"give these axes of {backend} values to cover: {lonely}"
    return found


def sample_of(backend: str, point: Point) -> Sample:
    """Case and configuration of a point. Raises InputError."""
    axes = {name: value for name, value in point.items() if name not in _CASE_AXES}
    return case_of(point["flow"], point["lattice"], point["collision"]), from_flat(
        completed({"backend": backend, **axes}, LIMITS)
    )


@cache
def case_of(flow: str, lattice: str, collision: str) -> Case:
    """A case of that flow on a domain that is large enough for every block; verification takes its own."""
    size = (192, 64, 1 if lattice == "d2q9" else 64)
    if flow == "box":
        return box(lattice, collision, size, 1.3)
    if flow == "rocks":
        return replace(box(lattice, collision, size, 1.3), flow="rocks", geometry="blocks:fraction=0.3")
    if flow == "channel":
        return channel(lattice, collision, size, 1.3, force=1e-3)
    case = cavity(lattice, collision, size, 1.3)
    if flow == "cavity":
        return case
    z = ("periodic", "periodic") if lattice == "d2q9" else ("moving", "wall")
    velocity = (0.05, -0.03, 0.0 if lattice == "d2q9" else 0.02)
    if flow in ("opened", "slipping"):
        return local_faces(flow, lattice, collision, size)
    if flow == "patched":
        return patched(lattice, collision, size)
    mixed = replace(case, faces=("moving", "wall", "wall", "moving", *z), wall_velocity=velocity)
    if flow == "grinder":
        return replace(mixed, flow="grinder", force=(1e-3, -5e-4, 0.0))
    return replace(mixed, flow="solids", geometry="blocks:fraction=0.3")


def local_faces(flow: str, lattice: str, collision: str, size: tuple[int, int, int]) -> Case:
    """Faces of every kind, inlet and outlet across x ("opened") or across y."""
    flat = lattice == "d2q9"
    case = replace(pipe(lattice, collision, size, 1.3), flow=flow, outlet_density=1.02, force=(1e-3, -5e-4, 0.0))
    case = replace(case, inlet_velocity=(0.04, -0.03, 0.0 if flat else 0.02), wall_velocity=(0.03, 0.0, 0.0))
    if flow == "opened":
        z = ("periodic", "periodic") if flat else ("slip", "wall")
        return replace(case, faces=("velocity", "pressure", "moving", "slip", *z))
    across = ("pressure", "velocity")
    return replace(case, faces=("wall", "slip", *across, *(("periodic",) * 2 if flat else ("moving", "slip"))))


def patched(lattice: str, collision: str, size: tuple[int, int, int]) -> Case:
    """Inlets, an outlet, free slip and two moving walls as parts of faces, beside a moving face and a free slip one."""
    flat = lattice == "d2q9"
    case, w = local_faces("opened", lattice, collision, size), 0.0 if flat else 0.02
    patches = (
        Patch("velocity", "rectangle:y=0.25..0.75", "x-", (0.04, -0.03, w)),
        Patch("velocity", "rectangle:y=0.75..1", "x-", (0.02, 0.0, w)),
        Patch("pressure", "disc:radius=0.3", "x+", density=1.02),
        Patch("moving", "rectangle:x=0..0.5", "y+", (0.05, 0.0, w)),
        Patch("slip", "rectangle:x=0.2..0.7", "y-"),
    )
    z: tuple[Face, Face] = ("periodic", "periodic") if flat else ("slip", "wall")
    faces: Faces = ("wall", "moving", "moving", "wall", *z)
    return replace(case, flow="patched", faces=faces, patches=patches)


_OF_WHOLE_FACES = tuple(name for name in FLOWS if name not in ("opened", "slipping", "patched"))


def with_patches(backend: str, seed: int = 1) -> Iterator[Sample | str]:
    """Every scheme x addressing x lattice with patches and SoA, by words in memory and, on a GPU, worked out.

    A reason where none is legal.
    """
    values, known = values_of(backend), [{"addressing": "direct", "flags": "memory"}, {"addressing": "indirect"}]
    known += [{"addressing": "direct", "flags": "compiled"}] * (backend == "cuda")
    for scheme, how, lattice in product(values["scheme"], known, LATTICES):
        point = {"scheme": scheme, **how, "lattice": lattice, "flow": "patched", "layout": "soa"}
        yield _first_legal(backend, {**point, "collision": "bgk", "storage": "fp64", "compute": "fp64"})


def reason_against(backend: str, point: Point) -> str | None:
    """Why a point is illegal, or None."""
    try:
        return broken(*sample_of(backend, point), LIMITS)
    except InputError as error:
        return str(error)


@cache
def schemes_layouts_lattices(backend: str) -> tuple[Sample | str, ...]:
    """Every scheme x layout x addressing x lattice in double precision, with walls, moving walls and a force.

    A reason in place of a sample where none is legal.
    """
    names = ("scheme", "layout", "addressing", "lattice")
    values = values_of(backend)
    found = []
    for chosen in product(*(values.get(name, ("direct",)) for name in names)):
        point = {name: value for name, value in zip(names, chosen, strict=True) if name in values}
        precision = {"storage": "fp64", "compute": "fp64"}
        found.append(_first_legal(backend, {**point, "flow": "grinder", "collision": "bgk", **precision}))
    return tuple(found)


def collisions_precisions(backend: str) -> Iterator[Sample | str]:
    """Every collision operator x lattice x precision on pull and AA, SoA. A reason where none is legal."""
    values = values_of(backend)
    names = ("scheme", "collision", "lattice", "storage", "compute")
    for chosen in product(("pull", "aa"), *(values[name] for name in names[1:])):
        point = dict(zip(names, chosen, strict=True))
        yield _first_legal(backend, {**point, "layout": "soa", "flow": "grinder"})


def pairwise(backend: str, seed: int = 1) -> Covering:
    """A covering array: every pair of values of two axes that some legal point has."""
    values, draw = values_of(backend), random.Random(seed)
    left = {(a, b) for x, y in combinations(sorted(values), 2) for a, b in product(_of(x, values), _of(y, values))}
    total, samples, illegal = len(left), list[Sample](), Counter[str]()
    for pair in sorted(left, key=repr):
        if pair not in left:
            continue
        found, reasons = _candidates(backend, values, pair, draw)
        if not found:
            illegal[reasons.most_common(1)[0][0]] += 1
            left.discard(pair)
            continue
        best = max(found, key=lambda point: len(_pairs(point) & left))
        left -= _pairs(best)
        samples.append(sample_of(backend, best))
    return Covering(tuple(dict.fromkeys(samples)), dict(illegal), total - sum(illegal.values()))


_OF_TILES: Mapping[str, tuple[Any, ...]] = {
    "steps": (1, 2, 3),
    "rows": (1, 2),
    "cells_per_thread": (1, 2),
    "pack": (1, 2, 4),
    "prefetch": (0, 1, 2),
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
    samples = (*(one for one in found if not isinstance(one, str)), *covering.samples)
    illegal = Counter(covering.illegal) + Counter(one for one in found if isinstance(one, str))
    return replace(covering, samples=tuple(dict.fromkeys(samples)), illegal=dict(illegal))


def _of(name: str, values: Mapping[str, tuple[Any, ...]]) -> list[tuple[str, Any]]:
    return [(name, value) for value in values[name]]


def _pairs(point: Point) -> set[Pair]:
    return set(combinations(sorted(point.items()), 2))


def _candidates(
    backend: str, values: Mapping[str, tuple[Any, ...]], pair: Pair, draw: random.Random
) -> tuple[list[Point], Counter[str]]:
    """A few legal points that have a pair, and why others are not legal."""
    found: list[Point] = []
    reasons: Counter[str] = Counter()
    for _ in range(_TRIES):
        point = _drawn(backend, values, dict(pair), draw)
        if isinstance(point, str):
            reasons[f"{pair[0][0]} and {pair[1][0]}: one does not act beside the other"] += 1
            continue
        reason = reason_against(backend, point)
        if reason:
            reasons[reason] += 1
        else:
            found.append(point)
        if len(found) == _CANDIDATES:
            break
    return found, reasons


def _drawn(backend: str, values: Mapping[str, tuple[Any, ...]], fixed: Point, draw: random.Random) -> Point | str:
    """A point with some values given; axes that do not act beside the others are neutral, half of the rest usual.

    The name of an axis where that takes one of the values given.
    """
    usual = defaults(backend)
    point: Point = {name: fixed.get(name, draw.choice(values[name])) for name in _CASE_AXES}
    point["backend"] = backend
    for axis in AXES[backend]:
        name = axis.name
        if name in _APART[backend]:
            continue
        quiet = neutral(name, point)
        if quiet is not None and fixed.get(name, quiet) != quiet:
            return name
        plain = usual[name] if usual[name] in values[name] and draw.random() < 0.6 else draw.choice(values[name])
        point[name] = quiet if quiet is not None else fixed.get(name, plain)
    del point["backend"]
    return point


def _first_legal(backend: str, wanted: Point) -> Sample | str:
    """A legal point with these values, the others as usual as may be; where no choice helps, the commonest reason."""
    values, draw = values_of(backend), random.Random(str(sorted(wanted.items())))
    kept = {name: value for name, value in wanted.items() if name in values or name in _CASE_AXES}
    reasons: Counter[str] = Counter()
    for _ in range(_TRIES):
        point = _drawn(backend, values, kept, draw)
        if isinstance(point, str):
            reasons[f"{point} does not act there"] += 1
        elif reason := reason_against(backend, point):
            reasons[reason] += 1
        else:
            return sample_of(backend, point)
    return reasons.most_common(1)[0][0]
