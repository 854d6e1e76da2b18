"""Threads without work: what is advised is legal, and gives threads work."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lbmtune.catalogue.config import CpuConfig, KernelConfig, cpu, cuda, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, porous
from lbmtune.files.casefile import domain_of
from lbmtune.records.idle_threads import idle_threads

PLANE, CUBE = box("d2q9", "bgk", (64, 64, 1)), box("d3q19", "bgk", (64, 64, 64))
SPARSE = porous("d3q19", "bgk", (32, 32, 32), 1.2, "blocks:fraction=0.3")
IDLE: list[tuple[Case, CpuConfig]] = [
    (PLANE, cpu.Direct(threads=16)),
    (PLANE, cpu.Direct(threads=100)),
    (PLANE, cpu.Direct(threads=16, parallel_loop="tile-32x1")),
    (PLANE, cpu.Direct(threads=100, pinning="node-7", scheme="swap-ordered", wrap="ghost")),
    (CUBE, cpu.Direct(threads=100, parallel_loop="tile-64x64")),
    (CUBE, cpu.Direct(threads=100, scheme="swap-ordered", wrap="ghost")),
    (CUBE, cpu.Direct(threads=100, scheme="ghost-cell", parallel_loop="tile-32x16")),
    (CUBE, cpu.Wavefront(steps=4, threads=16)),
    (CUBE, cpu.Wavefront(steps=4, threads=60)),
    (replace(CUBE, collision="regularised"), cpu.MomentsWavefront(tile=(32, 16, 32), threads=64)),
    (SPARSE, cpu.Sparse(threads=500)),
]


def advised(case: Case, config: CpuConfig, remark: str) -> list[tuple[Case, KernelConfig]]:
    """Each advice of a remark, taken."""
    advice, found = remark.partition("; ")[2], []
    for name, value in re.findall(r"([a-z_.]+)=([\w-]+)", advice):
        if name == "case.domain":
            found.append((replace(case, domain=domain_of(value, case.lattice)), config))
        else:
            found.append((case, from_flat({**config.flat(), name: value})))
    return found


@pytest.mark.parametrize(("case", "config"), IDLE)
def test_what_is_advised_is_legal_and_gives_more_threads_work(case: Case, config: CpuConfig) -> None:
    limits = Limits(cores=config.threads)
    assert broken(case, config.printed, limits) is None, "the sample itself is legal"
    remark = idle_threads(case, config)
    busy = config.busy_threads(case)
    assert remark.startswith(f"{busy} of {config.threads} threads ")
    taken = advised(case, config, remark)
    assert taken
    for on, other in taken:
        assert isinstance(other, CpuConfig)
        assert broken(on, other.printed, limits) is None
        assert other.busy_threads(on) > busy or other.threads == busy


@pytest.mark.parametrize(
    ("case", "config", "advice"),
    [
        (*IDLE[0], "parallel_loop=zy divides rows."),
        (*IDLE[1], "parallel_loop=zy divides rows, for 64 threads."),
        (*IDLE[2], "parallel_loop=tile-4x1 has smaller tiles."),
        (*IDLE[3], "use threads=64, or a larger domain such as case.domain=128x128x1."),
        (*IDLE[4], "parallel_loop=tile-32x1 has smaller tiles."),
        (*IDLE[5], "use threads=64, or a larger domain such as case.domain=128x128x128."),
        (*IDLE[6], "parallel_loop=tile-32x1 has smaller tiles."),
        (*IDLE[7], "steps=3 has thinner slabs."),
        (*IDLE[8], "steps=2 has thinner slabs, for 32 threads."),
    ],
)
def test_the_advice_is_the_least_that_helps(case: Case, config: CpuConfig, advice: str) -> None:
    assert idle_threads(case, config).endswith(f"; {advice}")


def test_there_is_nothing_to_remark_on_if_all_threads_work_or_on_a_gpu() -> None:
    assert idle_threads(PLANE, cpu.Direct(threads=1)) == ""
    assert idle_threads(PLANE, cpu.Direct(threads=16, parallel_loop="zy")) == ""
    assert idle_threads(PLANE, cuda.Direct()) == ""
