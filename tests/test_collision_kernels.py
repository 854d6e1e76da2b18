"""Every collision operator as a kernel: its CUDA text on the host, its CPU text interpreted and compiled, by NVRTC."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

import cpu_cases
import cuda_samples
from lbmtune.backend import nvrtc
from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.collisions import OPERATORS
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import DeviceUnavailableError
from lbmtune.lattice import LATTICES
from lbmtune.measure.verify import verify
from lbmtune.records import Verification
from shim.device import COMPILER, HostDevice, compile_on_host

PRECISIONS = ("fp64", "fp32", "fp16s")
PAIRS = [(name, lattice) for name, lattice in product(OPERATORS, LATTICES) if name not in ("bgk", "trt")]
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


@each_pair
@each_scheme
@each_precision
def test_cpu_text(operator: str, lattice: str, scheme: str, precision: str) -> None:
    found = cpu_cases.interpret(_cpu(operator, lattice, scheme, precision), periods=1)
    assert found.passed, found


COMPILED = [("regularised", "d2q9", "fp16s"), ("mrt", "d2q9", "fp32")]


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
}
"""What a fault changes in the text of an operator."""


@needs_compiler
@each_precision
@pytest.mark.parametrize("fault", MUTATIONS)
def test_verification_finds(fault: str, precision: str) -> None:
    operator, old, new = MUTATIONS[fault]
    case = cuda_samples.flows("d3q27" if operator == "cumulant" else "d3q19", operator)["channel"]
    program = render(case, cuda_samples.config(storage=precision, cells_per_thread=2))
    assert _on_host(program).passed
    assert program.source.count(old) == 1
    assert not _on_host(replace(program, source=program.source.replace(old, new))).passed


def _why_no_nvrtc() -> str:
    try:
        nvrtc.nvrtc()
    except DeviceUnavailableError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(_why_no_nvrtc()), reason=_why_no_nvrtc() or "NVRTC is there")
@each_pair
def test_nvrtc_compiles_without_spilling(operator: str, lattice: str) -> None:
    case = cuda_samples.flows(lattice, operator)["box"]
    found = nvrtc.compile_cuda(render(case, cuda_samples.config()), "sm_90").resources
    assert found.registers > 0
    assert found.spill_bytes <= 64
