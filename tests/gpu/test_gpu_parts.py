"""Parts that exchange on one GPU, and on two if they are there: bit for bit the state of one device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lbmtune.backend.registry import available, compiler_for, open_device
from lbmtune.catalogue.config import KernelConfig, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render, render_on_planes
from lbmtune.decomposition.coupling import Coupling
from lbmtune.decomposition.cuts import parse_cut
from lbmtune.decomposition.parts import decomposed
from lbmtune.measure.parts.proof import Agreement, agreement
from lbmtune.measure.parts.race import race
from lbmtune.runtime import Simulation
from lbmtune.runtime.parts.coupled import CoupledSimulation
from tests.support.kernels.configs import configured
from tests.support.kernels.cuda_samples import config, flows

pytestmark = pytest.mark.gpu
GRINDER = replace(flows("d3q19", "bgk")["grinder"], domain=(45, 37, 41))
BOX = replace(flows("d3q19", "regularised")["box"], domain=(64, 61, 67))
POROUS = replace(GRINDER, geometry="blocks:fraction=0.3", faces=("periodic",) * 6, wall_velocity=(0.0, 0.0, 0.0))
WIDE = replace(flows("d3q19", "bgk")["box"], domain=(192, 192, 192))
"""Whose launches take longer than the host needs to enqueue an exchange."""
KERNELS: dict[str, tuple[Case, KernelConfig, str]] = {
    "timed": (WIDE, config(scheme="pull", block=(64, 1, 1)), "z:2"),
    "pull": (GRINDER, config(scheme="pull", storage="fp64", block=(32, 2, 1)), "z:2"),
    "aa": (POROUS, config(scheme="aa", storage="fp64", block=(32, 2, 1), flags="memory"), "z:2"),
    "esoteric-pull": (GRINDER, config(scheme="esoteric-pull", storage="fp64", block=(32, 2, 1)), "y:2"),
    "index list": (
        POROUS,
        config(family="sparse", scheme="aa", storage="fp64", block=(128, 1, 1)),
        "bisection:2",
    ),
    "moments": (
        BOX,
        configured(
            cuda.TemporalBlocking, representation="moments", steps=3, block=(32, 8, 1), chunk_planes=16,
            plane_fetch="none", storage="fp64", compute="fp64",
        ),
        "z:2",
    ),
}  # fmt: skip


def devices(which: str) -> list[Any]:
    names = ("0", "0") if which == "one" else available()[:2]
    if len([name for name in names if name.isdecimal()]) < 2:
        pytest.skip("one GPU")
    opened = {name: open_device(name) for name in dict.fromkeys(names)}
    return [opened[name] for name in names]


def pair(kernel: str, which: str, coupling: Coupling, *, poisons: bool) -> tuple[Simulation, CoupledSimulation]:
    case, one, cut = KERNELS[kernel]
    opened, program = devices(which), render(case, one)
    compiler = compiler_for(opened[0].environment)
    taking = render_on_planes(program) or program
    with opened[0].current():
        alone = Simulation(program, compiler(program), opened[0])
    found = decomposed(case, one, parse_cut(cut))
    return alone, CoupledSimulation(taking, compiler(taking), opened, found, coupling, compiler, poisons=poisons)


def check(found: Agreement, kernel: str) -> None:
    assert found.passed, found
    assert kernel == "moments" or found.different == 0.0, found


@pytest.mark.parametrize("which", ["one", "two"])
@pytest.mark.parametrize("transport", ["copy", "pack", "host"])
@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "timed"])
def test_parts_have_the_state_of_one_gpu(kernel: str, transport: Any, which: str) -> None:
    """All overlaps, with poisoned halos, then as graphs."""
    slabs = KERNELS[kernel][2] == "z:2"
    if transport != "pack" and kernel in ("aa", "index list", "esoteric-pull"):
        pytest.skip("its messages have too many runs for copies")
    overlaps = ("none", "edge-first", "edge-priority") if slabs else ("none",)
    for overlap in overlaps:
        for poisons in (True, False):
            coupling = Coupling(transport, overlap)  # type: ignore[arg-type]
            alone, parts = pair(kernel, which, coupling, poisons=poisons)
            check(agreement(alone, parts, 4 if poisons else 38), kernel)


@pytest.mark.parametrize("which", ["one", "two"])
def test_parts_are_timed_beside_one_gpu(which: str) -> None:
    alone, parts = pair("timed", which, Coupling(), poisons=False)
    found = race(alone, parts, [Coupling(), Coupling("pack", "none"), Coupling(edge_planes=1 << 20)], sample_s=0.01)
    *timed, refused = found.coupled
    assert "leaves none between its edges" in refused.refused
    for one in timed:
        assert 0 < found.efficiency(one).median < 2
        assert 0 < one.exchange_s < one.median_s * 10
