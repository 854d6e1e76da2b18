"""Kernels that a conformance run checks by seeded choices: families whose domain follows from the configuration."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.config import KernelConfig, completed, cpu, cuda, from_flat
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.precision import STORAGES
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.lattice import LATTICES
from tests.support.conformance.choices import LIMITS, WALLED_OR_PERIODIC, Sample, case_of
from tests.support.conformance.parts.tiles import forced

_MOMENTS_PRECISIONS = (("fp64", "fp64"), ("fp32", "fp32"), ("fp16s", "fp32"), ("bf16", "fp32"))
_PIPELINES: Mapping[str, tuple[Any, ...]] = {
    "steps": (1, 2, 3, 5),
    "tile_x": (16, 32, 64),
    "tile_y": (2, 5, 8),
    "tile_z": (1, 3),
    "threads": (1, 2),
    "row_offset": (0, 16),
    "row_padding": (0, 15),
    "vector_bits": (256, 512),
}


def moments_wavefront(seed: int = 1) -> Iterator[Sample]:
    """Kernels of moments on a CPU: every storage, lattice and layout with a seeded choice of what else they have.

    And every flow with walls or solid cells.
    """
    draw = random.Random(seed)
    for lattice, precision, layout in product(LATTICES, _MOMENTS_PRECISIONS, ("soa", "rows")):
        case = replace(case_of("box", lattice, "regularised"), force=(1e-3, -5e-4, 2e-4 * (lattice != "d2q9")))
        chosen = _drawn_pipeline(draw)
        ahead = {"prefetch_rows": draw.choice((0, 1))} if layout == "soa" and chosen["steps"] > 1 else {}
        yield _pipeline(case, precision, {**chosen, **ahead, "layout": layout})
    walls = [name for name in WALLED_OR_PERIODIC if name != "box"]
    for n, (flow, precision) in enumerate(zip(walls, _MOMENTS_PRECISIONS * 2, strict=False)):
        case = case_of(flow, tuple(LATTICES)[n % len(LATTICES)], "regularised")
        flags = "memory" if case.geometry else "compiled"
        yield _pipeline(case, precision, {**_drawn_pipeline(draw), "flags": flags})


def _drawn_pipeline(draw: random.Random) -> dict[str, Any]:
    chosen = {name: draw.choice(values) for name, values in _PIPELINES.items()}
    tile = "x".join(str(chosen.pop(f"tile_{axis}")) for axis in "xyz")
    return {**chosen, "tile": tile}


def _pipeline(case: Case, precision: tuple[str, str], chosen: Mapping[str, Any]) -> Sample:
    storage, compute = precision
    return _legal(case, cpu.MomentsWavefront, {**chosen, "storage": storage, "compute": compute})


def _legal(case: Case, record: type[KernelConfig], chosen: Mapping[str, Any]) -> Sample:
    config = from_flat(completed({"backend": record.backend, "family": record.family, **chosen}, LIMITS))
    reason = broken(case, config, LIMITS)
    assert reason is None, reason
    return case, config


def persistent_populations(seed: int = 1) -> Iterator[Sample]:
    """Kernels that keep populations on chip: every storage, lattice and flow, with a seeded choice of the others."""
    draw = random.Random(seed)
    for lattice, storage, flow in product(LATTICES, STORAGES, WALLED_OR_PERIODIC):
        flat = lattice == "d2q9"
        point: dict[str, Any] = {"storage": storage, "tile_planes": 1 if flat else draw.choice((1, 2, 3))}
        point |= {"layout": draw.choice(("rows", "soa", "aosoa", "aos")), "min_blocks": draw.choice((0, 2))}
        point |= {"grid_sync": draw.choice(("all", "neighbours")), "block": f"8x{draw.choice((1, 2, 3))}x1"}
        point |= {"width": 8} if point["layout"] == "aosoa" else {}
        if flow in ("solids", "rocks") or (flow != "box" and draw.random() < 0.3):
            point["flags"] = "memory"
        case = case_of(flow, lattice, draw.choice([one for one in COLLISIONS if collides(one, lattice)]))
        yield _legal(replace(case, domain=(8, 6, 1 if flat else 6)), cuda.Persistent, point)


_ON_CHIP: Mapping[str, tuple[Any, ...]] = {
    "cells_per_thread": (1, 2),
    "rows": (1, 2),
    "register_planes": (0, 1),
    "grid_sync": ("all", "neighbours"),
    "min_blocks": (0, 2),
    "layout": ("soa", "rows"),
}


def persistent_moments(seed: int = 2) -> Iterator[Sample]:
    """Kernels that keep moments there: every storage and lattice, with a seeded choice of the others."""
    draw = random.Random(seed)
    for lattice, (storage, compute) in product(LATTICES, _MOMENTS_PRECISIONS):
        flat, flow = lattice == "d2q9", draw.choice(("box", "grinder", "solids"))
        point: dict[str, Any] = {name: draw.choice(values) for name, values in _ON_CHIP.items()}
        point |= {"representation": "moments", "block": "16x2x1", "tile_planes": 2}
        point |= {"storage": storage, "compute": compute}
        point |= {"rows": 1} if flat else {}
        point |= {"flags": "memory"} if flow == "solids" else {}
        domain = (16 * point["cells_per_thread"], 8, 1 if flat else 8)
        yield _legal(replace(case_of(flow, lattice, "regularised"), domain=domain), cuda.Persistent, point)


_FACE_EXCHANGE: Mapping[str, tuple[str, ...]] = {
    "d2q9": ("fp32",),
    "d3q19": ("fp64", "fp32", "fp16s", "bf16"),
    "d3q27": ("fp64", "bf16"),
}


def face_exchange(seed: int = 1) -> Iterator[Sample]:
    """Tiles of moments that leave at their faces what crosses them: some storages of every lattice, in turn all flows.

    With a seeded choice of what else they have.
    """
    draw = random.Random(seed)
    kinds = [(flow, flags) for flow in WALLED_OR_PERIODIC for flags in ("memory", "compiled") if _has(flow, flags)]
    draw.shuffle(kinds)
    found = [(lattice, storage) for lattice, storages in _FACE_EXCHANGE.items() for storage in storages]
    for (lattice, storage), (flow, flags) in zip(found, kinds, strict=False):
        flat = lattice == "d2q9"
        tile = draw.choice(("8x2x1", "16x2x1", "4x4x1") if flat else ("8x2x2", "16x1x3", "4x4x1"))
        point: dict[str, Any] = {"tile": tile, "storage": storage, "flags": flags}
        point |= {"layout": draw.choice(("soa", "rows", "aos", "tiled", "tiled-cells"))}
        point |= {"launch": draw.choice(("call", "graph", "dependent"))}
        point |= {"register_limit": draw.choice(("none", "2-blocks"))}
        tiled = point["layout"].startswith("tiled")
        point |= {"layout_tile": "8x2x1" if flat else draw.choice(("16x1x3", "8x4x2"))} if tiled else {}
        point |= {"prefetch_to": draw.choice(("registers", "shared"))} if storage in ("fp64", "fp32") else {}
        yield forced(_legal(case_of(flow, lattice, "regularised"), cuda.FaceExchange, point))


def _has(flow: str, flags: str) -> bool:
    """Whether a flow can have such flags: solid cells need words, and a flow without walls has none."""
    return flow not in ("solids", "rocks") if flags == "compiled" else flow != "box"


SEEDED: Mapping[str, tuple[Callable[[], Iterator[Sample]], ...]] = {
    "cuda": (persistent_populations, face_exchange, persistent_moments),
    "cpu": (moments_wavefront,),
}
"""The parts of each backend."""
