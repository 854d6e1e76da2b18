"""Planes that a thread has read ahead wait in shared memory, copied there while the thread goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import CudaConfig, cuda, family, knobs_by_name
from lbmtune.catalogue.families.rules import broken, cuda_limits
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from lbmtune.model.gpu.families import estimated
from tests.catalogue.boundaries.test_implicit import rocks
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS, case_of
from tests.support.kernels.compiled import ptx
from tests.support.kernels.configs import configured, refusal
from tests.support.kernels.cuda_samples import needs_nvrtc

on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def config(**knobs: Any) -> CudaConfig:
    compute = "fp64" if knobs.get("storage") == "fp64" else "fp32"
    usual = {"z_cells": 4, "prefetch_cells": 1, "prefetch_to": "shared", "block": "32x2x1", "compute": compute}
    found = configured(cuda.Column, **usual | knobs)
    assert isinstance(found, CudaConfig)
    return found


def listed(**knobs: Any) -> CudaConfig:
    usual = {"sites_per_thread": 4, "prefetch_sites": 1, "prefetch_to": "shared", "block": "32x1x1"}
    found = configured(cuda.Sparse, **usual | knobs)
    assert isinstance(found, CudaConfig)
    return found


def passes(program: Program) -> bool:
    return verify(program, compile_on_host(program), HostDevice(), 3).passed


SAMPLES: list[tuple[str, str, CudaConfig]] = [
    ("grinder", "d3q19", config(scheme="aa", cells_per_thread=4, z_cells=5, prefetch_cells=3, block="8x2x1")),
    ("slipping", "d3q19", config(scheme="esoteric-pull", cells_per_thread=2, storage="fp16s", wrap="ghost")),
    ("grinder", "d2q9", listed(prefetch_sites=3, cells_per_thread=4)),
    ("solids", "d2q9", listed(prefetch_sites=2, scheme="esoteric-pull", pointer_swap=1)),
    (
        "rocks",
        "d2q9",
        listed(scheme="esoteric-twist", links="three_pointers", prefetch_index=96, sites_per_thread=3),
    ),
]


@on_host
@pytest.mark.parametrize(("flow", "lattice", "chosen"), SAMPLES)
def test_kernels(flow: str, lattice: str, chosen: CudaConfig) -> None:
    case = case_of(flow, lattice, "bgk")
    assert broken(case, chosen, LIMITS) is None
    assert passes(render(case, chosen))


FAULTS: dict[str, tuple[str, str, CudaConfig]] = {
    "no group where nothing is copied": (
        "        copies_begin();",
        "        if (round < end) copies_begin();",
        config(prefetch_cells=2),
    ),
    "the set of another cell": ("(round - first) % AHEAD;", "0;", config(prefetch_cells=2)),
    "the end of another row": (
        "thread / SEGMENT;",
        "0;",
        config(prefetch_cells=2, cells_per_thread=2, block="8x2x1"),
    ),
    "the other half of a copy": (
        "from.end->of[in_end(wall ? bounced : slot + (row + lane.before))]",
        "from.end->of[0]",
        config(prefetch_cells=2, cells_per_thread=2, storage="fp16s"),
    ),
    "another row of the list": ("links, 1, sites, site);", "links, 0, sites, site);", listed(prefetch_sites=2)),
}


# every third one for every day
@on_host
@pytest.mark.parametrize(
    "fault", [pytest.param(f, marks=pytest.mark.slow if n % 3 else ()) for n, f in enumerate(FAULTS)]
)
def test_verification_finds(fault: str) -> None:
    old, new, chosen = FAULTS[fault]
    program = render(case_of("box", "d3q19", "bgk"), chosen)
    assert program.source.count(old) == 1
    assert not passes(replace(program, source=program.source.replace(old, new)))


def shared(chosen: CudaConfig) -> set[int]:
    case = rocks("d3q19") if isinstance(chosen, cuda.Sparse) else case_of("box", "d3q19", "bgk")
    program = render(case, chosen)
    return {launch.shared_bytes for step in program.period for launch in step}


def test_bytes_of_shared_memory() -> None:
    """Q x threads x cells x bytes, with vectors four bytes or a value more for each part of a row; words of a list."""
    assert shared(config()) == {19 * 64 * 4}
    assert shared(config(prefetch_cells=3)) == {3 * 19 * 64 * 4}
    assert shared(config(cells_per_thread=4)) == {19 * (64 * 16 + 2 * 4)}
    assert shared(config(cells_per_thread=2, storage="fp16s")) == {19 * (64 * 4 + 2 * 4)}
    assert shared(config(cells_per_thread=2, storage="fp64", block="8x4x1")) == {19 * (32 * 16 + 4 * 8)}
    assert shared(config(prefetch_to="registers")) == {0}
    assert shared(listed(scheme="pull")) == {18 * 32 * 4}
    assert shared(listed(scheme="aa", prefetch_sites=2, cells_per_thread=4)) == {0, 2 * 18 * 32 * 16}
    assert shared(listed(scheme="esoteric-twist")) == {6 * 32 * 4, 7 * 32 * 4}, "six octants, and a mask"
    assert shared(listed(scheme="esoteric-twist", links="three_pointers")) == {3 * 32 * 4, 4 * 32 * 4}


def test_what_is_moved_is_the_same() -> None:
    case, other = case_of("box", "d3q19", "bgk"), config(prefetch_cells=2)
    one = config(prefetch_to="registers", prefetch_cells=2)
    assert traffic(case, one) == traffic(case, other)
    assert footprint_bytes(case, one) == footprint_bytes(case, other)
    kept, waiting = (estimated(case, chosen) for chosen in (one, other))
    assert (kept.registers - waiting.registers, kept.shared_bytes) == (2 * 19, 0)
    assert waiting.shared_bytes == 2 * 19 * 64 * 4


@needs_nvrtc
def test_no_registers_are_taken() -> None:
    case = case_of("box", "d3q19", "bgk")
    kept, waiting = (
        compile_cuda(render(case, config(prefetch_to=to, prefetch_cells=3))).resources for to in ("registers", "shared")
    )
    assert kept.spill_bytes == waiting.spill_bytes == waiting.local_bytes == 0
    assert waiting.registers + 19 <= kept.registers


@needs_nvrtc
def test_copies_are_as_wide_as_what_a_thread_reads() -> None:
    case = case_of("box", "d3q19", "bgk")
    wide = ptx(render(case, config(scheme="aa", cells_per_thread=4)), "compute_90")
    assert "ld.global.v4" not in wide
    assert len([line for line in wide.splitlines() if "cp.async.ca" in line and line.endswith(", 16;")]) == 2 * 19
    assert len([line for line in wide.splitlines() if "cp.async.ca" in line and line.endswith(", 4;")]) == 10


MARCH: dict[str, Any] = {"chunk_planes": 4, "block": "32x8x1"}
REASONS: dict[str, tuple[CudaConfig, dict[str, Any], str]] = {
    "nothing ahead": (config(), {"prefetch_cells": 0}, "prefetch_to=shared is not supported for prefetch_cells=0"),
    "unknown": (config(), {"prefetch_to": "later"}, "prefetch_to=later is not supported for family column"),
    "too little": (
        config(storage="fp16s", cells_per_thread=2),
        {"cells_per_thread": 1},
        "2 bytes at once; an asynchronous copy moves 4, 8 or 16",
    ),
    "hints": (
        config(store_hint="streaming"),
        {"load_hint": "streaming"},
        "load_hint=streaming",
    ),
    "too much": (
        config(cells_per_thread=4, block="32x8x1"),
        {"prefetch_cells": 2},
        "156,864 bytes of shared memory; a block of this device has 101,376",
    ),
    "moments": (
        configured(cuda.TemporalBlocking, plane_fetch="none", **MARCH),
        {"prefetch_to": "shared"},
        "prefetch_to is not a knob of family temporal-blocking",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_reasons(name: str) -> None:
    one, illegal, reason = REASONS[name]
    case = case_of("box", "d3q19", "bgk")
    assert broken(case, one, LIMITS) is None
    assert reason in refusal(case, LIMITS, one, **illegal)


def test_devices_without_such_copies() -> None:
    case = case_of("box", "d3q19", "bgk")
    old, new = (cuda_limits(name, 80, 2**34) for name in ("sm_70", "sm_80"))
    march = configured(cuda.TemporalBlocking, plane_fetch="cp_async", **MARCH)
    reasons = {
        "prefetch_to=shared is not supported by this device (use registers): it needs": config(),
        "plane_fetch=cp_async is not supported by this device (use registers): it has no": march,
    }
    for reason, chosen in reasons.items():
        assert broken(case, chosen, new) is None
        assert reason in str(broken(case, chosen, old))


def test_when_the_axis_acts() -> None:
    known = knobs_by_name(family("cuda", "column"))["prefetch_to"]
    assert known.neutral({"z_cells": 4, "prefetch_cells": 1}) is None
    assert known.neutral({"z_cells": 4, "prefetch_cells": 0}) == "registers"
    assert "prefetch_to" not in knobs_by_name(family("cuda", "temporal-blocking"))
