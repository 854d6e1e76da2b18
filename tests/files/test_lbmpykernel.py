"""The kernels of lbmpy as a user's kernel: what is refused, and with lbmpy that every variant is right."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.limits import Limits
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.catalogue.problem.flows import box
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.render import render
from lbmtune.errors import InputError
from lbmtune.files import lbmpykernel
from lbmtune.files.lbmpykernel import IN_PLACE, LAYOUTS, LOOPS, PATTERNS, lbmpy_kernel, lbmpy_study
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification import own_kernel as own_kernel  # which registers how these are verified
from lbmtune.measure.verification.verify import verify
from tests.shim.device import COMPILER, HostDevice, compile_on_host

CASE = box("d3q19", "bgk", (32, 16, 8))


def test_without_lbmpy_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lbmpy", None)
    with pytest.raises(
        InputError, match=r'needs lbmpy, which is not installed; pip install "lbmpy>=2\.0", or name a file'
    ):
        lbmpy_study([], "cpu", 0)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("precision=fp16s", r"precision=fp16s is not supported for --kernel lbmpy \(use fp32, fp64\)"),
        ("case.lattice=d2q9", r"lattice=d2q9 is not supported for --kernel lbmpy \(use d3q19, d3q27\)"),
        ("case.collision=cumulant", r"collision=cumulant is not supported for --kernel lbmpy \(use bgk, trt"),
        ("case.relaxation_rate=fast", r"relaxation_rate=fast is no number; give one between 0 and 2"),
        ("case.collision=bgkk", "unknown collision 'bgkk'"),
    ],
)
def test_bad_cases_are_refused(override: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        lbmpy_study([override], "cpu", 0)


@cache
def described(backend: str, bits: int) -> Any:
    return lbmpy_kernel(CASE, "fp32", backend, bits)


def program_of(backend: str, bits: int, **knobs: Any) -> OwnProgram:
    kernel, case = described(backend, bits)
    config = family_of(kernel).parse(knobs)
    assert broken(case, config, Limits(memory_bytes=1 << 40, cores=2)) is None
    found = render(case, config)
    assert isinstance(found, OwnProgram)
    return found


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (cc)")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_loops_of_a_compiler_are_right(pattern: str, layout: str) -> None:
    program = program_of("cpu", 0, PATTERN=pattern, LAYOUT=layout, threads=1)
    found = verify(program, compile_cpu(program), PooledDevice(open_cpu()))
    assert found.passed, found.where


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("cc") or open_cpu().limits.vector_bits < 256, reason="no C compiler, or no AVX")
@pytest.mark.parametrize(
    ("pattern", "loop"), [(p, s) for p in PATTERNS for s in LOOPS[1:] if s != "stream" or p not in IN_PLACE]
)
def test_loops_of_vectors_are_right(pattern: str, loop: str) -> None:
    program = program_of("cpu", 256, PATTERN=pattern, LOOP=loop, threads=2)
    found = verify(program, compile_cpu(program), PooledDevice(open_cpu()))
    assert found.passed, found.where


@pytest.mark.peer
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_kernels_of_a_gpu_are_right_on_the_host_shim(pattern: str, layout: str) -> None:
    program = program_of("cuda", 0, PATTERN=pattern, LAYOUT=layout, BLOCK_X=32, BLOCK_Y=2)
    assert compile_cuda(program).resources.entries["even"].registers > 16
    source = program.source.replace("blockDim.x", "32").replace("blockDim.y", "2").replace("blockDim.z", "1")
    on_host = replace(program, source=source)  # the shim knows no blockDim
    found = verify(on_host, compile_on_host(on_host), PooledDevice(HostDevice()), 2)
    assert found.passed, found.where


@pytest.mark.peer
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler (cc)")
@pytest.mark.parametrize(("collision", "precision"), [("trt", "fp64"), ("regularised", "fp32"), ("mrt", "fp32")])
def test_other_collisions_are_right(collision: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lbmpykernel, "PATTERNS", ("aa",))
    kernel, case = lbmpy_kernel(box("d3q19", collision, CASE.domain), precision, "cpu", 0)
    program = render(case, family_of(kernel).parse({"threads": 1}))
    found = verify(program, compile_cpu(program), PooledDevice(open_cpu()))
    assert found.passed, found.where


@pytest.mark.peer
def test_what_is_written_is_read_where_it_moves() -> None:
    found: dict[str, Any] = {}
    exec(described("cpu", 0)[0].reference.python, found)
    velocities = [CASE.stencil.velocities[i] for i in found["ORDER"]]
    for pattern, times in found["PLACES"].items():
        for time in range(2):
            written, read = times[time][1], times[1 - time][0]
            for c, (slot, offset), (slot_after, offset_after) in zip(velocities, written, read, strict=True):
                assert slot == slot_after, pattern
                assert offset == tuple(a + b for a, b in zip(offset_after, c, strict=True)), pattern


@pytest.mark.peer
def test_a_study_restricts_knobs_and_fits_its_case() -> None:
    spec = lbmpy_study(["case.domain=32x16x8", "PATTERN=aa,pull", "budget.trials=2"], "cpu", 0)
    assert (spec.case.domain, spec.budget.trials) == ((32, 16, 8), 2)
    assert spec.axes["cpu"]["PATTERN"] == ("aa", "pull")
    assert spec.kernel is not None
    config = family_of(spec.kernel).parse({"PATTERN": "aa"})
    two = family_of(spec.kernel).parse({"PATTERN": "pull"})
    assert (config.population_bytes(spec.case), two.population_bytes(spec.case)) == (2 * 19 * 4, 3 * 19 * 4)
    assert 2 * config.scratch_bytes(spec.case) == two.scratch_bytes(spec.case) + 8
