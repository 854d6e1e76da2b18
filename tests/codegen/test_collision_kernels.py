"""Every collision operator as a kernel: its CUDA text on the host, its CPU text interpreted and compiled, by NVRTC."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.collisions import COLLISIONS
from lbmtune.catalogue.problem.case import Case, collides
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Verification
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels import cpu_cases, cuda_samples

PRECISIONS = ("fp64", "fp32", "fp16s")
PAIRS = [
    (o, lattice) for o, lattice in product(COLLISIONS, LATTICES) if o not in ("bgk", "trt") and collides(o, lattice)
]
each_pair = pytest.mark.parametrize(("operator", "lattice"), PAIRS)
each_precision = pytest.mark.parametrize("precision", PRECISIONS)
each_scheme = pytest.mark.parametrize("scheme", ["pull", "aa"])
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def _forced_lids(operator: str, lattice: str) -> Case:
    """Walls all around, several of them moving, and a force."""
    return cuda_samples.flows(lattice, operator)["grinder"]


def _cuda(operator: str, lattice: str, scheme: str, precision: str, forced: bool = True) -> Program:
    case = _forced_lids(operator, lattice)
    case = case if forced else replace(case, force=(0.0, 0.0, 0.0))
    return render(case, cuda_samples.config(scheme=scheme, storage=precision, cells_per_thread=2))


def _cpu(operator: str, lattice: str, scheme: str, precision: str, layout: str = "soa") -> Program:
    case = replace(cpu_cases.case_of("moving-x", lattice, operator), force=(1e-3, -5e-4, 0.0))
    return cpu_cases.program_of(case, cpu_cases.config_of(scheme, layout, precision))


def _on_host(program: Program) -> Verification:
    return verify(program, compile_on_host(program), HostDevice())


@pytest.mark.thinned(6)
@needs_compiler
@each_pair
@each_scheme
@each_precision
def test_cuda_text_on_the_host(operator: str, lattice: str, scheme: str, precision: str) -> None:
    found = _on_host(_cuda(operator, lattice, scheme, precision))
    assert found.passed, found


@needs_compiler
@each_pair
def test_cuda_text_without_a_force(operator: str, lattice: str) -> None:
    assert _on_host(_cuda(operator, lattice, "pull", "fp32", forced=False)).passed


@pytest.mark.thinned(6)
@each_pair
@each_scheme
@each_precision
def test_cpu_text(operator: str, lattice: str, scheme: str, precision: str) -> None:
    found = cpu_cases.interpret(_cpu(operator, lattice, scheme, precision), periods=1)
    assert found.passed, found


COMPILED = [("regularised", "d2q9", "fp16s"), ("mrt", "d2q9", "fp32"), ("cumulant", "d3q27", "fp64")]


@pytest.mark.parametrize(("operator", "lattice", "precision"), COMPILED)
def test_compiled_cpu_kernels(
    operator: str, lattice: str, precision: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LBMTUNE_CACHE", str(tmp_path))
    layout = "soa" if vector_bits() >= 512 else "soa-256"
    program = _cpu(operator, lattice, "aa", precision, layout)
    found = verify(program, compile_cpu(program), open_cpu())
    assert found.passed, found


MUTATIONS: dict[str, tuple[str, str, str]] = {
    "regularised, wrong rate of a shear moment": ("regularised", "keep * second_xy", "omega * second_xy"),
    "regularised, moments swapped": ("regularised", "cp7 = relaxed_xx + relaxed_xy", "cp7 = relaxed_xx + relaxed_xz"),
    "regularised, force lost": ("regularised", "after_x = Real(1.0 / 2) * force_x + jx", "after_x = jx"),
    "mrt, wrong rate of a shear moment": ("mrt", "relaxed_110 = keep *", "relaxed_110 = omega *"),
    "mrt, trace relaxed with the shear": (
        "mrt",
        "relaxed_200 = keep * (central_x_200 - mean)",
        "relaxed_200 = keep * central_x_200",
    ),
    "mrt, moments swapped": ("mrt", "out_x_120 = back_y_120", "out_x_120 = back_y_210"),
    "mrt, force lost": ("mrt", "after_x = half_x + jx", "after_x = jx"),
    "cumulant, wrong rate of a shear moment": ("cumulant", "shear_110 = keep *", "shear_110 = omega *"),
    "cumulant, moments swapped": ("cumulant", "half_excess + keep * delta_x", "half_excess + keep * delta_y"),
    "cumulant, force lost": ("cumulant", "new_x = half_x + jx", "new_x = jx"),
}
"""What a fault changes in the text of an operator."""


@pytest.mark.thinned(6)
@needs_compiler
@each_precision
@pytest.mark.parametrize("fault", MUTATIONS)
def test_verification_finds(fault: str, precision: str) -> None:
    assert not _mutated(*MUTATIONS[fault], precision).passed


@needs_compiler
@pytest.mark.parametrize("precision", ["fp64", "fp32"])
def test_verification_finds_a_lost_correction_of_the_viscosity(precision: str) -> None:
    """A term of the order u^2 times a departure from equilibrium, below what half precision stores."""
    assert not _mutated("cumulant", "excess_x = slope_x * square_x", "excess_x = 0", precision).passed


def _mutated(operator: str, old: str, new: str, precision: str) -> Verification:
    case = cuda_samples.flows("d3q27" if operator == "cumulant" else "d3q19", operator)["channel"]
    program = render(case, cuda_samples.config(storage=precision, cells_per_thread=2))
    assert _on_host(program).passed
    assert program.source.count(old) == 1
    return _on_host(replace(program, source=program.source.replace(old, new)))


@cuda_samples.needs_nvrtc
@each_pair
def test_nvrtc_compiles_without_spilling(operator: str, lattice: str) -> None:
    case = cuda_samples.flows(lattice, operator)["box"]
    found = nvrtc.compile_cuda(render(case, cuda_samples.config()), "sm_90").resources
    assert found.registers > 0
    assert found.spill_bytes <= 64
