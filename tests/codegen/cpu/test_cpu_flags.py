"""Kernels for a CPU that take what is cut from flags: their text interpreted, compiled, and made wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.measure.verification.verify import verify
from tests.support.devices.interpreted_simd import RaceError
from tests.support.kernels.cpu_cases import FLAGGED, LAYOUTS, case_of, config_of, interpret, program_of
from tests.support.kernels.full_size import verify_full_size

SPARSE, DENSE = "blocks:fraction=0.02:seed=3", "blocks:fraction=0.4:size=2"


def _case(flow: str, lattice: str, geometry: str) -> Case:
    return replace(case_of(flow, lattice), geometry=geometry)


def _program(scheme: str, layout: str, case: Case, precision: str = "fp64", **axes: Any) -> Program:
    return program_of(case, config_of(scheme, layout, precision, flags="memory", **axes))


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("scheme", "layout"), list(product(FLAGGED, LAYOUTS)))
def test_every_scheme_and_layout(scheme: str, layout: str) -> None:
    """Few solid cells, so that there are vectors without any beside them; moving walls at both ends of the rows."""
    found = interpret(_program(scheme, layout, _case("moving-x", "d2q9", SPARSE)))
    assert found.passed, found


@pytest.mark.thinned(6)
@pytest.mark.parametrize("scheme", FLAGGED)
@pytest.mark.parametrize(
    ("flow", "lattice", "geometry", "layout", "precision"),
    [
        ("box", "d2q9", DENSE, "soa", "fp64"),
        ("box", "d2q9", SPARSE, "aosoa", "fp16s"),
        ("moving-x", "d2q9", "", "soa-256", "fp32"),
        ("channel", "d2q9", "", "soa", "fp64"),  # rows wrap, and links that leave at their ends are cut by other walls
        ("channel", "d2q9", "", "aosoa-scalar", "fp32"),
        ("cavity", "d2q9", "sphere", "soa", "fp32"),
        ("channel", "d3q19", DENSE, "soa-256", "fp64"),
    ],
)
def test_cases(scheme: str, flow: str, lattice: str, geometry: str, layout: str, precision: str) -> None:
    found = interpret(_program(scheme, layout, _case(flow, lattice, geometry), precision))
    assert found.passed, found


@pytest.mark.parametrize(
    ("scheme", "layout", "axes"),
    [
        ("pull", "soa", {"streaming_stores": 1, "row_offset": 8, "row_padding": 7, "threads": 2}),
        ("aa", "aosoa", {"parallel_loop": "zy", "threads": 2}),
        ("esoteric-twist", "soa-256", {}),
        ("push", "soa-select", {}),
    ],
)
def test_compiled(scheme: str, layout: str, axes: dict[str, Any]) -> None:
    program = _program(scheme, layout, _case("moving-x", "d3q19", SPARSE), **axes)
    device = open_cpu()
    if device.limits.vector_bits * 2 < program.config.flat()["vector_bits"]:  # type: ignore[operator]
        pytest.skip("this processor has no such vectors")
    binary = compile_cpu(program)
    found = verify(program, binary, device, 2)
    assert found.passed, found
    assert verify_full_size(program, binary, device).passed


def _text(old: str, new: str) -> Callable[[Program], Program]:
    def mutate(program: Program) -> Program:
        assert old in program.source
        return replace(program, source=program.source.replace(old, new))

    return mutate


MUTATIONS: dict[str, tuple[str, Callable[[Program], Program]]] = {
    "another bit": ("pull", _text("word & 8 ", "word & 16 ")),
    "walls at rest": ("pull", _text("moved & 2 ", "0 & 2 ")),
    "solid cells are updated": ("esoteric-pull", _text("if cut:", "if False:")),
    "words of the row below": ("aa", _text("at = (z * ny + y) * nx", "at = (z * ny + (y + 1) % ny) * nx")),
    "ghost columns always copied back": ("esoteric-twist", _text("if not flags[at + nx - 1] & 4:", "if True:")),
}


@pytest.mark.parametrize("fault", MUTATIONS)
def test_verification_finds_a_wrong_kernel(fault: str) -> None:
    scheme, mutate = MUTATIONS[fault]
    program = mutate(_program(scheme, "soa", _case("moving-x", "d2q9", SPARSE)))
    with contextlib.suppress(RaceError):
        assert not interpret(program).passed
