"""Kernels of moments in two dimensions: warps that march along y on their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import bytes_per_update
from lbmtune.catalogue.moments.basis import orders, upright
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.describe import describe_storage
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification.verify import verify
from lbmtune.runtime.moments import places
from tests.codegen.cuda.temporal_blocking.test_temporal_blocking_moments import LIMITS, _text
from tests.codegen.cuda.temporal_blocking.test_temporal_blocking_moments import config as solid_config
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import case_of
from tests.support.kernels.configs import refusal
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
D2Q9 = LATTICES["d2q9"]


def flow(name: str = "box") -> Case:
    if name == "box":
        return replace(box("d2q9", "regularised", (192, 64, 1), 1.3), force=(1e-3, -5e-4, 0.0))
    return case_of(name, "d2q9", "regularised")


def config(**axes: object) -> CudaConfig:
    return solid_config(**{"block": (32, 2, 1), **axes})


def test_y_stands_for_z() -> None:
    """Six moments, in the same order whichever axis is the second one."""
    assert orders(D2Q9) == ((0, 0, 0), (1, 0, 0), (0, 1, 0), (2, 0, 0), (0, 2, 0), (1, 1, 0))
    assert orders(upright(D2Q9)) == tuple((x, z, y) for x, y, z in orders(D2Q9))
    assert upright(LATTICES["d3q19"]) is LATTICES["d3q19"]


def test_bytes_and_tiles() -> None:
    assert bytes_per_update(flow(), config(steps=6)) == 8
    assert config(steps=6, cells_per_thread=2, pack=2, block=(32, 4, 1), chunk_planes=100).block_cells(D2Q9) == (
        208,
        100,
        1,
    )
    assert config().shared_bytes(flow("cavity")) == 0
    assert config(plane_fetch="cp_async", pack=2).shared_bytes(flow()) == 64 * 24


def test_every_moment_has_a_place_and_a_formula() -> None:
    case, one = replace(flow(), domain=(13, 5, 1)), config(pack=4)
    found = [np.ravel(at) for at in places(case, one, np)]
    assert len(set(np.concatenate(found).tolist())) == 6 * 13 * 5
    described = describe_storage(render(case, one)).moments
    assert [moment.order for moment in described] == list(orders(D2Q9))
    extents = {"NX": 16, "NY": 5, "NZ": 1, "x": 3, "y": 2, "z": 0}
    assert [eval(m.index.replace("/", "//"), extents) for m in described] == [int(at[2 * 13 + 3]) for at in found]


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        ({"rows": 2}, "rows=2 is not supported for lattice=d2q9 (use 1)"),
        ({"pack": 8}, "pack=8 is not supported for lattice=d2q9: a cell has 6 moments"),
        ({"chunk_planes": 65}, "chunk_planes=65: a column of this domain has 64 cells"),
        ({"steps": 9}, "steps=9 is not supported for family temporal-blocking (use 1 to 8)"),
    ],
)
def test_illegal(knobs: dict[str, object], reason: str) -> None:
    assert reason in refusal(flow(), LIMITS, config(), **knobs)


SAMPLES: dict[str, tuple[str, dict[str, object]]] = {
    "one step": ("box", {}),
    "six steps, pairs": ("box", {"steps": 6, "cells_per_thread": 2, "pack": 2, "plane_fetch": "registers"}),
    "eight steps, shared memory": ("box", {"steps": 8, "pack": 2, "plane_fetch": "cp_async"}),
    "eight steps, bulk copies": ("box", {"steps": 8, "pack": 2, "plane_fetch": "bulk", "overread": 1}),
    "double": ("box", {"steps": 3, "layout": "soa", "storage": "fp64", "compute": "fp64", "plane_fetch": "registers"}),
    "channel": ("channel", {"steps": 2, "cells_per_thread": 4}),
    "cavity, four steps, halves": (
        "cavity",
        {"steps": 4, "cells_per_thread": 4, "pack": 4, "storage": "fp16s", "flags": "memory"},
    ),
    "moving walls": ("grinder", {"steps": 5, "cells_per_thread": 2, "pack": 2, "plane_fetch": "registers"}),
    "solid cells": ("solids", {"steps": 3, "cells_per_thread": 2, "plane_fetch": "registers", "flags": "memory"}),
}


@needs_compiler
@pytest.mark.parametrize("name", SAMPLES)
def test_kernels_on_the_host(name: str) -> None:
    case, axes = flow(SAMPLES[name][0]), config(**SAMPLES[name][1])
    assert broken(case, axes, LIMITS) is None
    program = render(case, axes)
    found = verify(program, compile_on_host(program), HostDevice(), 2)
    assert found.passed, found


@needs_compiler
@pytest.mark.parametrize("size", [(2, 1, 1), (37, 5, 1)])
def test_domains_smaller_than_the_halo(size: tuple[int, int, int]) -> None:
    program = render(replace(flow("cavity"), domain=size), config(steps=4, chunk_planes=1))
    found = verify_full_size(program, compile_on_host(program), HostDevice())
    assert found.passed, found


FAULTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "halo too narrow": ("box", _text("next_y = wrapped(begin - STEPS, ny)", "next_y = wrapped(begin - STEPS + 1, ny)")),
    "a tile of another warp": ("box", _text("(blockIdx.x * WARPS + warp) * width", "blockIdx.x * WARPS * width")),
    "a sum of another moment": (
        "cavity",
        _text("m[4] = current[5] + falls_00", "m[4] = current[3] + falls_00"),
    ),
    "what is outside sends": ("cavity", _text("m[k] = word & 1u ? Real(0) : m[k]", "(void)k")),
    "lines beyond the box are read": ("solids", _text("if (outside || within", "if (within")),
}


@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    name, change = FAULTS[fault]
    flags = "memory" if name == "solids" else "compiled"
    program = render(flow(name), config(steps=3, plane_fetch="registers", flags=flags))
    changed = replace(program, source=change(program.source))
    assert not verify(changed, compile_on_host(changed), HostDevice(), 1).passed


@needs_nvrtc
@pytest.mark.parametrize("name", ["box", "cavity"])
def test_six_steps_of_pairs_do_not_spill(name: str) -> None:
    """So many of 12 warps fit into a multiprocessor's 65536 registers, and of 8 warps with walls."""
    one = config(steps=6, cells_per_thread=2, pack=2, plane_fetch="registers", block=(32, 4, 1), chunk_planes=256)
    found = nvrtc.compile_cuda(
        render(replace(flow(name), domain=(8192, 8192, 1), force=(0.0, 0.0, 0.0)), one)
    ).resources
    assert found.registers <= (168 if name == "box" else 255)
    assert found.spill_bytes == 0
