"""CUDA configurations that the tests of text, compiler and shim share."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import islice, product
from typing import Any

import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.config import FAMILIES, CudaConfig, cuda, knobs_by_name
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.layouts import LAYOUTS
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, channel
from lbmtune.catalogue.schemes import SCHEMES
from lbmtune.errors import DeviceUnavailableError
from lbmtune.lattice import LATTICES
from tests.support.kernels.configs import configured

Sample = tuple[Case, CudaConfig]

SCHEME_NAMES = tuple(name for name, s in SCHEMES.items() if not s.phase(LATTICES["d2q9"], 0).ordered)
"""Those that ask for no order of the cells, which a GPU has not."""
VECTOR_SCHEMES = tuple(name for name in SCHEME_NAMES if not SCHEMES[name].phase(LATTICES["d2q9"], 0).blockwise)
"""Those whose threads may update several cells, side by side or one after another."""
LAYOUT_NAMES, LATTICE_NAMES = tuple(LAYOUTS), tuple(LATTICES)
PRECISIONS = {"fp64": "fp64", "fp32": "fp32", "fp16s": "fp32", "fp16c": "fp32", "bf16": "fp32"}
"""Storage and the arithmetic that belongs to it."""
LAYOUT_AXES: dict[str, dict[str, object]] = {
    "aosoa": {"width": 16},
    "bundle": {"group": 3},
    "bundle-aosoa": {"group": 5, "width": 16},
    "tiled": {"layout_tile": (8, 2, 1)},
    "tiled-cells": {"layout_tile": (8, 3, 1)},
}
"""What a layout needs besides its name."""


def _why_no_nvrtc() -> str:
    try:
        nvrtc.nvrtc()
    except DeviceUnavailableError as error:
        return str(error)
    return ""


needs_nvrtc = pytest.mark.skipif(bool(_why_no_nvrtc()), reason=_why_no_nvrtc() or "NVRTC is there")


def domain(lattice: str) -> tuple[int, int, int]:
    return (192, 64, 1) if lattice == "d2q9" else (192, 64, 64)


@cache
def flows(lattice: str, collision: str) -> dict[str, Case]:
    """The three flows, and one with a force, walls all around and several of them moving."""
    size = domain(lattice)
    case = cavity(lattice, collision, size, 1.3)
    z = ("periodic", "periodic") if lattice == "d2q9" else ("moving", "wall")
    moved = (0.05, -0.03, 0.0 if lattice == "d2q9" else 0.02)
    faces = ("moving", "wall", "wall", "moving", *z)
    return {
        "box": box(lattice, collision, size, 1.3),
        "cavity": case,
        "channel": channel(lattice, collision, size, 1.3, force=1e-3),
        "grinder": replace(case, flow="grinder", faces=faces, wall_velocity=moved, force=(1e-3, -5e-4, 0.0)),
    }


def legal(case: Case, config: CudaConfig) -> bool:
    return broken(case, config, Limits()) is None


def config(**given: Any) -> Any:
    """A configuration whose arithmetic and layout parameters follow from the other knobs, in small blocks.

    family: if it is not given, the first of direct, column and sparse that has all knobs.
    """
    record = FAMILIES["cuda"][given["family"]] if "family" in given else _inferred(given)
    stored = str(given.get("storage", "fp32"))
    chosen = {
        "storage": stored,
        "compute": PRECISIONS[stored.removesuffix("-unshifted")],
        **LAYOUT_AXES.get(str(given.get("layout")), {}),
        **given,
    }
    return configured(record, **{**_SMALL_BLOCKS.get(record, {}), **chosen})


_SMALL_BLOCKS: dict[Any, dict[str, object]] = {
    cuda.Direct: {"block": (16, 2, 1)},
    cuda.Column: {"block": (16, 2, 1)},
    cuda.Sparse: {"block": (32, 1, 1)},
}


def _inferred(given: dict[str, Any]) -> type[CudaConfig]:
    return next(one for one in (cuda.Direct, cuda.Column, cuda.Sparse) if given.keys() <= knobs_by_name(one).keys())


def one_of_each_kind(flow: str) -> Iterator[Sample]:
    """Scheme x layout x lattice x precision x cells per thread, without a register limit.

    Of the layouts that only join or cut what the plain ones have, and of the storage formats that only convert in
    another way, a kernel of each form of scheme; of the schemes whose passes have the accesses of others, the
    plainest layout.
    """
    stored = ("fp64", "fp32", "fp16s")
    several = ("two-step", "swap", "ghost-cell")
    plain = (
        *product(
            [name for name in SCHEME_NAMES if name not in several],
            ("soa", "aos", "aosoa"),
            LATTICE_NAMES,
            stored,
            (1, 2, 4, 8),
        ),
        *product(several, ("soa",), LATTICE_NAMES, ("fp32",), (1, 4)),
    )
    coded = product(("pull", "aa"), ("soa",), ("d3q19",), [name for name in PRECISIONS if name not in stored], (1, 8))
    other = [name for name in LAYOUT_NAMES if name not in ("soa", "aos", "aosoa")]
    joined = product(("pull", "aa"), other, ("d3q19",), ("fp32",), (1, 4))
    for scheme, layout, lattice, storage, cells in (*plain, *coded, *joined):
        case = flows(lattice, "bgk")[flow]
        one = config(scheme=scheme, layout=layout, storage=storage, cells_per_thread=cells, block=(32, 2, 1))
        if legal(case, one):
            yield case, one


def sampled(count: int, seed: int) -> list[Sample]:
    """Legal combinations of all axes, drawn at random: the same ones for the same seed."""
    return list(islice(samples(seed), count))


def samples(seed: int) -> Iterator[Sample]:
    """The same without an end."""
    draw = random.Random(seed)
    while True:
        lattice, layout = draw.choice(LATTICE_NAMES), draw.choice(LAYOUT_NAMES)
        storage, compute = draw.choice((*PRECISIONS.items(), ("fp32", "fp64"), ("fp16s", "fp64"), ("fp16c", "fp64")))
        case = draw.choice(list(flows(lattice, draw.choice(("bgk", "trt"))).values()))
        one = config(
            scheme=draw.choice(SCHEME_NAMES),
            layout=layout,
            storage=storage,
            compute=compute,
            cells_per_thread=draw.choice((1, 2, 4, 8)),
            wrap=draw.choice(("arithmetic", "ghost")),
            block=draw.choice(
                ((8, 2, 1), (16, 2, 1), (32, 1, 1), (64, 1, 1), (4, 4, 1), (2, 2, 1), (8, 2, 2), (16, 1, 3))
            ),
            **({"width": draw.choice((8, 16, 24))} if "aosoa" in layout else {}),
            **({"group": draw.choice((2, 3, 5))} if "bundle" in layout else {}),
            **({"layout_tile": draw.choice(_tiles(lattice))} if "tiled" in layout else {}),
            **({"padding": draw.choice((0, 8))} if layout == "soa" else {}),
        )
        if legal(case, one):
            yield case, one


def _tiles(lattice: str) -> tuple[tuple[int, int, int], ...]:
    return ((8, 2, 1), (16, 1, 1), (24, 4, 1)) if lattice == "d2q9" else ((8, 2, 2), (16, 1, 3), (24, 4, 1))


def label(sample: Sample) -> str:
    case, one = sample
    parts = (case.lattice, case.flow, case.collision, one.scheme, one.memory.name, one.storage, one.compute, one.wrap)
    return "-".join((*parts, f"v{one.cells_per_thread}", "x".join(map(str, one.block))))
