"""Threads that go on from site to site of a list, and have read the words of those to come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import CudaConfig, completed, family, from_flat, knobs_by_name
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.footprint import footprint_bytes, traffic
from lbmtune.catalogue.sparse.nodes import counts
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import verify
from tests.catalogue.boundaries.test_implicit import rocks
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.conformance.choices import LIMITS, case_of
from tests.support.kernels.cuda_samples import needs_nvrtc
from tests.support.kernels.full_size import verify_full_size

on_host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def config(scheme: str, **axes: Any) -> CudaConfig:
    values = {"backend": "cuda", "scheme": scheme, "family": "sparse", "block": "32x1x1", "sites_per_thread": 4, **axes}
    found = from_flat(completed(values, LIMITS))
    assert isinstance(found, CudaConfig)
    return found


def passes(program: Program) -> bool:
    return verify(program, compile_on_host(program), HostDevice(), 3).passed


SAMPLES: list[tuple[str, str, dict[str, Any]]] = [
    ("rocks", "pull", {"prefetch_sites": 1, "cells_per_thread": 4}),
    ("grinder", "aa", {"sites_per_thread": 3, "storage": "fp64"}),
    ("grinder", "push", {"sites_per_thread": 5, "prefetch_sites": 2, "prefetch_index": 96}),
    ("rocks", "esoteric-twist", {"prefetch_sites": 3, "links": "three_pointers", "cells_per_thread": 2}),
    (
        "rocks",
        "esoteric-pull",
        {"sites_per_thread": 2, "prefetch_sites": 1, "boundary": "implicit", "layout": "aosoa", "width": 16},
    ),
    ("grinder", "two-step", {"prefetch_sites": 2, "order": "tile"}),
]


@on_host
@pytest.mark.parametrize(("flow", "scheme", "axes"), SAMPLES)
def test_kernels(flow: str, scheme: str, axes: dict[str, Any]) -> None:
    case, chosen = case_of(flow, "d2q9", "bgk"), config(scheme, **axes)
    assert broken(case, chosen, LIMITS) is None
    assert passes(render(case, chosen))


@on_host
def test_on_the_whole_domain() -> None:
    program = render(rocks("d3q19"), config("esoteric-twist", prefetch_sites=2))
    assert verify_full_size(program, compile_on_host(program), HostDevice()).passed


FAULTS = {
    "the set of other sites": ("sets[(turn + 1) % (AHEAD + 1)]", "sets[turn]"),
    "sites of the next block": ("(BLOCK * MARCH)", "BLOCK"),
    "the last sites": ("round < MARCH + AHEAD", "round < MARCH"),
}


@on_host
@pytest.mark.parametrize("fault", FAULTS)
def test_verification_finds(fault: str) -> None:
    # without solid cells, and in small blocks, so that the last ones hold no spare sites alone
    program = render(case_of("grinder", "d2q9", "bgk"), config("esoteric-twist", prefetch_sites=1, block="4x1x1"))
    old, new = FAULTS[fault]
    assert program.source.count(old) >= 1
    assert not passes(replace(program, source=program.source.replace(old, new)))


def test_a_block_takes_more_sites_and_no_more_bytes() -> None:
    case, one, other = rocks(), config("aa", sites_per_thread=1), config("aa", sites_per_thread=4, prefetch_sites=2)
    for chosen, taken in ((one, 32), (other, 128)):
        program = render(case, chosen)
        launch, _ = (step[0] for step in program.period)
        assert launch.covers == (taken, 1, 1)
        assert program.grid(launch, case.domain) == (-(-counts(case, chosen).sites // taken), 1, 1)
    assert traffic(case, one) == traffic(case, other)
    assert footprint_bytes(case, one) == footprint_bytes(case, other)


@needs_nvrtc
def test_words_ahead_are_kept_in_registers() -> None:
    case = case_of("rocks", "d3q19", "bgk")
    found = [
        compile_cuda(render(case, config("aa", sites_per_thread=8, prefetch_sites=n, block="128x1x1")))
        for n in (0, 1, 2)
    ]
    assert all(one.resources.spill_bytes == one.resources.local_bytes == 0 for one in found)
    none, one, two = (binary.resources.registers for binary in found)
    assert none + 9 <= one <= two, "half of the odd steps' words at least"


def test_the_axes_act_with_lists() -> None:
    known = knobs_by_name(family("cuda", "sparse"))
    assert known["sites_per_thread"].neutral({}) is None
    assert known["prefetch_sites"].neutral({"sites_per_thread": 1}) == 0
    assert known["prefetch_sites"].neutral({"sites_per_thread": 4}) is None


def test_reasons() -> None:
    case = replace(case_of("box", "d2q9", "bgk"), domain=(64, 16, 1))
    assert broken(case, config("aa", sites_per_thread=32), LIMITS) is None
    assert broken(case, config("aa", sites_per_thread=33), LIMITS) == (
        "sites_per_thread=33: a block takes 1,056 sites of a domain of 1,024 cells"
    )
    assert broken(case, config("aa", prefetch_sites=4, sites_per_thread=8), LIMITS) == (
        "prefetch_sites=4 is not supported for family sparse (use 0 to 3)"
    )
