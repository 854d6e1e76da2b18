"""Density and velocity by a pass of their own between two launches are those that the host sums up.

Conformance compares them for the covering kernels of every family; here are those of each kind of table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import FLOWS
from lbmtune.codegen.cuda.macroscopic_pass import macroscopic_pass
from lbmtune.codegen.render import render
from lbmtune.runtime import macroscopic_pass as passes
from lbmtune.runtime.macroscopic_places import Boxed, factors, places_of, vectors
from scripts.conformance import wrong_fields
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.kernels.cuda_samples import needs_nvrtc

on_shim = pytest.mark.skipif(not COMPILER, reason="g++ is not installed")
DOMAIN = (16, 12, 8)
CASES = {
    "box": Case("box", "d3q19", "bgk", DOMAIN, 1.6, force=(1e-3, 0.0, -2e-3)),
    "cavity": Case(
        "cavity", "d3q19", "bgk", DOMAIN, 1.6, faces=("wall",) * 5 + ("moving",), wall_velocity=(0.05, 0.0, 0.0)
    ),
    "pipe": Case(
        "pipe",
        "d3q19",
        "bgk",
        DOMAIN,
        1.6,
        faces=("velocity", "pressure", "wall", "wall", "slip", "slip"),
        inlet_velocity=(0.02, 0.0, 0.0),
    ),
    "porous": Case("porous", "d3q19", "bgk", DOMAIN, 1.6, geometry="blocks:fraction=0.4", force=(1e-4, 0.0, 0.0)),
}
CPU = {
    "box": [
        "scheme=aa",
        "scheme=esoteric-twist,layout=aosoa,width=16",
        "scheme=pull,storage=fp16s",
        "family=wavefront",
    ],
    "cavity": [
        "scheme=aa,storage=fp64,compute=fp64",
        "scheme=push,layout=aos,vector_bits=0",
        "scheme=swap,storage=bf16",
    ],
    "pipe": ["scheme=aa", "scheme=pull,storage=fp16c"],
    "porous": ["family=sparse,scheme=aa", "family=sparse,scheme=esoteric-twist", "flags=memory,scheme=pull"],
}
_BLOCK = "block=16x1x1"
"""A block that fits into a row of these domains, unlike the default one."""
CUDA = {
    "box": [
        f"scheme=aa,{_BLOCK}",
        f"scheme=esoteric-pull,layout=bundle,group=5,{_BLOCK}",
        f"scheme=pull,storage=fp16s,launch=graph,{_BLOCK}",
    ],
    "cavity": [f"scheme=aa,flags=memory,{_BLOCK}", f"scheme=push,storage=fp64,compute=fp64,{_BLOCK}"],
    "pipe": [f"scheme=aa,{_BLOCK}", f"scheme=pull,storage=bf16,{_BLOCK}"],
    "porous": ["family=sparse,scheme=aa", "family=sparse,scheme=pull", f"flags=memory,scheme=esoteric-pull,{_BLOCK}"],
}


def samples(texts: dict[str, list[str]]) -> list[Any]:
    return [pytest.param(name, text, id=f"{name}-{text}") for name, several in texts.items() for text in several]


def of_moments(backend: str) -> tuple[Case, Any]:
    family = "moments-wavefront" if backend == "cpu" else "temporal-blocking,representation=moments"
    case = replace(CASES["box"], collision="regularised", domain=(64, 16, 16))
    return case, parse_config(f"family={family}", backend)


@pytest.mark.parametrize(("name", "text"), samples(CUDA))
def test_samples_of_a_gpu_obey_the_rules(name: str, text: str) -> None:
    assert broken(CASES[name], parse_config(text), Limits()) is None


@pytest.mark.parametrize(("name", "text"), samples(CPU))
def test_fields_on_a_cpu(name: str, text: str) -> None:
    assert wrong_fields(render(CASES[name], parse_config(text, "cpu")), open_cpu(), compile_cpu) is None


@pytest.mark.parametrize(
    ("text", "singles"),
    [
        ("scheme=aa", 2),  # at the ends, beyond which the row is periodic
        ("scheme=pull,layout=aosoa,width=16", 4),
        ("scheme=pull,layout=aos,vector_bits=0", 32),
        ("scheme=pull,wrap=ghost", 2),
    ],
)
def test_vectors_and_single_cells_cover_a_row(text: str, singles: int) -> None:
    case, config = replace(CASES["box"], domain=(32, 12, 8)), parse_config(text, "cpu")
    for parity in range(config.propagation.period):
        found = places_of(case, config, parity, np).found
        assert isinstance(found, Boxed)
        runs, others = vectors(found, 32, 8)
        assert sorted({*others, *(x + lane for x in runs for lane in range(8))}) == [*range(32)]
        assert len(others) <= singles
        for x in runs:
            assert (np.diff(found.along[0, :, x : x + 8]) == 1).all()


@on_shim
@pytest.mark.parametrize(("name", "text"), samples(CUDA))
def test_fields_of_cuda_kernels(name: str, text: str) -> None:
    assert wrong_fields(render(CASES[name], parse_config(text)), HostDevice(), compile_on_host) is None


def test_fields_of_moments() -> None:
    assert wrong_fields(render(*of_moments("cpu")), open_cpu(), compile_cpu) is None
    if COMPILER:
        assert wrong_fields(render(*of_moments("cuda")), HostDevice(), compile_on_host) is None


def test_a_wrong_sign_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def turned(case: Case, config: Any) -> list[list[float]]:
        rho, x, *others = factors(case, config)
        return [rho, [-one for one in x], *others]

    monkeypatch.setattr(passes, "factors", turned)
    program = render(CASES["box"], parse_config("scheme=aa", "cpu"))
    assert "is off by" in str(wrong_fields(program, open_cpu(), compile_cpu))


@needs_nvrtc
@pytest.mark.parametrize("storage", ["fp64", "fp32", "fp16s", "fp16c", "bf16"])
@pytest.mark.parametrize("listed", [False, True])
def test_the_text_compiles(storage: str, listed: bool) -> None:
    program = render(CASES["box"], parse_config(f"storage={storage},compute={'fp64' if storage == 'fp64' else 'fp32'}"))
    case, config = program.case, program.config
    text = macroscopic_pass(case, config, factors(case, config), listed=listed, words=not listed)
    found = compile_cuda(text, architecture="sm_90").resources
    assert 0 < found.registers <= 96
    assert not found.spill_bytes


def test_every_flow_is_a_case_of_these() -> None:
    assert set(CASES) <= set(FLOWS)
