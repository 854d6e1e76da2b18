"""The student's kernel in CUDA: right on the host shim in all its variants, and compiled by NVRTC."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lbmtune.api.machines.shipped import named_machine
from lbmtune.backend.cuda.nvrtc import compile_cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.limits import cuda_limits
from lbmtune.catalogue.own_kernel.config import family_of
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.render import render
from lbmtune.files.kernelfile import load_kernel
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.verification import own_kernel as own_kernel  # which registers how these are verified
from lbmtune.measure.verification.verify import verify
from lbmtune.model.predict import predict
from lbmtune.records import Resources
from tests.shim.device import COMPILER, HostDevice, compile_on_host
from tests.support.paths import ROOT

KERNEL, CASE = load_kernel(ROOT / "examples" / "own-kernel" / "d2q9_gpu.cu")
LIMITS = cuda_limits("sm_90", 132, 80 << 30)


def program_of(text: str = KERNEL.source, **knobs: int) -> OwnProgram:
    kernel = replace(KERNEL, source=text)
    found = render(CASE, family_of(kernel).parse({"BLOCK_X": 16, "BLOCK_Y": 4, **knobs}))
    assert isinstance(found, OwnProgram)
    return found


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize(("soa", "modulo"), [(0, 1), (1, 0)])
def test_the_kernel_is_right_on_the_host_shim(soa: int, modulo: int) -> None:
    program = program_of(SOA=soa, MODULO=modulo)
    device = PooledDevice(HostDevice())
    device.reset()
    found = verify(program, compile_on_host(program), device, 2)
    assert found.passed, found.where
    device.check_guards(program.buffers())


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
def test_a_wrong_kernel_is_found_on_the_host_shim() -> None:
    program = program_of(KERNEL.source.replace("x >= nx ||", "x + 1 >= nx ||"), SOA=1)
    found = verify(program, compile_on_host(program), HostDevice(), 2)
    assert not found.passed
    assert found.where.startswith("g[")


def test_nvrtc_compiles_the_instance_of_a_template() -> None:
    program = program_of(MODULO=0)
    binary = compile_cuda(program)
    assert program.options[-2:] == ("-DBLOCK_Y=4", "-DSOA=0"), "a knob in braces is no macro"
    assert list(binary.names) == ["step<0>"]
    assert binary.resources.entries["step<0>"].registers > 16
    machine = named_machine("h200")
    compiled = predict(CASE, program.config, machine, binary.resources)
    spilled = replace(binary.resources.entries["step<0>"], spill_bytes=400, local_bytes=400)
    worse = predict(CASE, program.config, machine, Resources(entries={"step<0>": spilled}))
    assert 0.9 * 4.8e12 / 72e6 > compiled.mlups > worse.mlups > 0


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"BLOCK_X": 512, "BLOCK_Y": 16}, "the constraint 'BLOCK_X * BLOCK_Y <= 1024' of d2q9_gpu does not hold"),
        ({"BLOCK_X": 48}, "BLOCK_X=48 is not supported"),
    ],
)
def test_illegal_values(knobs: dict[str, int], why: str) -> None:
    assert (broken(CASE, program_of(**knobs).config, LIMITS) or "").startswith(why)


def test_limits_of_the_device_hold_for_any_kernel() -> None:
    kernel = replace(KERNEL, constraints=())
    made = family_of(kernel).parse
    assert broken(CASE, made({"BLOCK_X": 512, "BLOCK_Y": 2}), LIMITS) is None
    assert "this device allows 1024" in (broken(CASE, made({"BLOCK_X": 512, "BLOCK_Y": 4}), LIMITS) or "")
    greedy = replace(kernel, geometry=replace(kernel.geometry, shared_bytes="4096 * BLOCK_X"))
    assert "this device allows 232448" in (broken(CASE, family_of(greedy).parse({"BLOCK_X": 64}), LIMITS) or "")
    halved = replace(kernel, geometry=replace(kernel.geometry, block=("BLOCK_X / 3", "1", "1")))
    assert "has to be a whole number" in (broken(CASE, family_of(halved).parse({}), LIMITS) or "")
