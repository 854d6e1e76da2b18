"""Compiled CPU kernels against the oracle, and the device that runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.cpu.compilation.modules import import_text, machine_code
from lbmtune.backend.cpu.device import CpuDevice, vector_bits
from lbmtune.backend.protocol import CompileError, Device, OutOfMemoryError, TooManyResourcesError
from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.errors import InputError
from lbmtune.lattice import LATTICES
from lbmtune.measure.verification.verify import verify
from lbmtune.records import Verification
from tests.support.kernels.cpu_cases import PRECISIONS, SCHEMES_AND_LAYOUTS, case_of, config_of, program_of
from tests.support.kernels.full_size import verify_full_size


@pytest.fixture(scope="session")
def device() -> Device:
    return open_cpu()


@pytest.fixture(scope="session", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LBMTUNE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def _verified(program: Program, device: Device, periods: int = 2) -> Verification:
    needed = int(program.config.flat()["vector_bits"])
    if needed > 2 * vector_bits():
        pytest.skip(f"this processor has no vectors of {needed} bits")
    return verify(program, compile_cpu(program), device, periods)


SAMPLES: list[tuple[str, str, str, str, str, dict[str, Any]]] = [
    ("pull", "soa", "d3q19", "cavity", "fp32", {"threads": 2}),
    ("pull", "soa", "d2q9", "box", "fp32", {"streaming_stores": 1, "row_offset": 16, "row_padding": 15, "threads": 2}),
    ("pull", "soa", "d2q9", "channel", "fp64", {"streaming_stores": 1, "row_offset": 8, "row_padding": 7}),
    ("aa", "soa", "d2q9", "moving-x", "fp32", {"streaming_stores": 1, "row_padding": 15, "threads": 2}),
    ("pull", "soa-scalar", "d3q27", "moving-x", "fp64", {}),
    ("pull", "aosoa", "d2q9", "moving-x", "fp16s", {}),
    ("aa", "soa-256", "d2q9", "moving-x", "fp16c", {}),
    ("aa", "soa-256", "d2q9", "moving-x", "fp16s", {"compute": "fp64"}),
    ("pull", "soa-256", "d2q9", "moving-x", "bf16", {"threads": 2}),
    ("esoteric-twist", "aosoa-256", "d2q9", "channel", "fp16c", {}),
    ("aa", "bundle-aosoa-256", "d3q19", "moving-x", "fp32", {"threads": 2}),
    ("push", "bundle", "d2q9", "channel", "fp64", {}),
    ("pull", "tiled-scalar", "d3q19", "moving-x", "fp32", {"threads": 2}),
    ("esoteric-pull", "tiled-cells", "d2q9", "moving-x", "fp64", {}),
    ("push", "soa-256", "d2q9", "moving-x", "fp64", {"parallel_loop": "zy", "threads": 2}),
    ("push", "aos", "d2q9", "cavity", "fp32", {}),
    ("push", "aosoa-256", "d2q9", "moving-x", "fp32", {}),
    ("aa", "soa", "d2q9", "moving-x", "fp64", {}),
    ("aa", "aosoa", "d2q9", "cavity", "fp32", {"parallel_loop": "tile-2x2", "threads": 2}),
    ("aa", "soa-select", "d2q9", "moving-x", "fp32", {}),
    ("esoteric-pull", "soa", "d2q9", "channel", "fp16s", {"parallel_loop": "zy", "threads": 2}),
    ("esoteric-pull", "soa-256", "d2q9", "moving-x", "fp32", {}),
    ("esoteric-pull", "aosoa-select", "d2q9", "moving-x", "fp64", {}),
    ("esoteric-twist", "soa", "d3q27", "moving-x", "fp32", {}),
    ("esoteric-twist", "soa-scalar", "d2q9", "moving-x", "fp16s", {}),
    ("esoteric-twist", "aosoa-256", "d2q9", "moving-x", "fp64", {}),
    ("esoteric-twist", "aos-select", "d2q9", "channel", "fp64", {}),
    ("ghost-cell", "aosoa", "d2q9", "moving-x", "fp16c", {}),
    ("swap-ordered", "soa-256", "d2q9", "moving-x", "fp64", {"threads": 2}),
]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(("scheme", "layout", "lattice", "flow", "precision", "axes"), SAMPLES)
def test_samples(
    scheme: str, layout: str, lattice: str, flow: str, precision: str, axes: dict[str, Any], device: Device
) -> None:
    collision = "trt" if flow == "channel" else "bgk"
    found = _verified(
        program_of(case_of(flow, lattice, collision), config_of(scheme, layout, precision, **axes)), device
    )
    assert found.passed, found


def test_prefetches_are_instructions(device: Device) -> None:
    def prefetches(**axes: int) -> int:
        """The instruction prefetcht0 is 0f 18 with 1 in the middle bits of the next byte."""
        program = program_of(case_of("box", "d2q9"), config_of("aa", "soa-256", "fp32", **axes))
        assert _verified(program, device).passed
        module = import_text(Path(compile_cpu(program).image.decode()), program.source)
        return len(re.findall(rb"\x0f\x18[\x08-\x0f\x48-\x4f\x88-\x8f]", machine_code(module.step_1)))

    assert prefetches() == 0
    assert prefetches(prefetch_propagated=32) >= 8


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("scheme", "layout"), SCHEMES_AND_LAYOUTS)
def test_everything(scheme: str, layout: str, device: Device) -> None:
    for lattice, flow, precision in product(LATTICES, ("channel", "moving-x"), PRECISIONS):
        found = _verified(program_of(case_of(flow, lattice), config_of(scheme, layout, precision)), device)
        assert found.passed, (lattice, flow, precision, found)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_nobody_wrote_shows(precision: str, device: Device) -> None:
    """Compiled arithmetic must not lose the NaN that fills a ghost column that was not refreshed."""
    program = program_of(case_of("box", "d2q9"), config_of("pull", "soa", precision))
    stale = re.sub(r"\n    store_one\(.*", "", program.source)
    assert not _verified(replace(program, source=stale), device).passed


def test_measured_domain_itself(device: Device) -> None:
    program = program_of(case_of("cavity", "d3q19"), config_of("push", "soa", "fp32"))
    assert verify_full_size(program, compile_cpu(program), device).passed


def _small() -> tuple[Case, CpuConfig]:
    return case_of("box", "d2q9"), config_of("push", "soa-scalar", "fp32")


def test_compiled_in_one_process_loaded_in_another(device: Device) -> None:
    code = (
        "from tests.support.kernels.cpu_cases import program_of; from tests.codegen.cpu.test_cpu_kernels import _small;"
        "from lbmtune.backend.cpu import compile_cpu; print(compile_cpu(program_of(*_small())).digest)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    program = program_of(*_small())
    binary = compile_cpu(program)
    assert binary.digest == done.stdout.strip()
    assert binary.resources.code_bytes > 1000
    entry = device.load(program, binary).entries["step_0"]  # type: ignore[attr-defined]
    assert sum(entry.stats.cache_hits.values()) == 1


def test_damaged_module_is_written_again(device: Device) -> None:
    program = program_of(*_small())
    binary = compile_cpu(program)
    Path(binary.image.decode()).write_text("raise SystemExit", encoding="utf-8")
    assert verify(program, binary, device, 1).passed


def test_refused_text_is_a_compile_error() -> None:
    program = program_of(*_small())
    with pytest.raises(CompileError, match="undefined"):
        compile_cpu(replace(program, source=program.source.replace("f1 + f2", "f1 + undefined")))


def test_arrays_start_at_a_cache_line(device: Device) -> None:
    for elements, alignment in ((100, 64), (1 << 22, 1 << 21)):
        array = device.empty(elements, "float16")
        assert array.ctypes.data % alignment == 0
        assert array.size == elements
        assert array.dtype == np.float16


def test_too_large_an_array_is_refused(device: Device) -> None:
    with pytest.raises(OutOfMemoryError):
        device.empty(1 << 50, "float32")


def test_too_many_threads_are_refused(device: Device) -> None:
    case, config = _small()
    program = replace(program_of(case, config), config=replace(config, threads=4096))
    with pytest.raises(TooManyResourcesError, match="4096"):
        device.load(program, compile_cpu(program))


def test_environment_names_the_processor(device: Device) -> None:
    environment = device.environment
    assert environment.backend == "cpu"
    assert environment.device
    assert environment.cores >= device.limits.cores >= 1
    assert environment.vector_bits == device.limits.vector_bits == vector_bits()
    assert environment.memory_bytes >= device.limits.memory_bytes > 0


def test_timing_and_share() -> None:
    device = CpuDevice()
    assert device.conditions().cpu_share is None
    assert device.time_s(lambda: None) >= 0.0
    share = device.conditions().cpu_share
    assert share is not None
    assert share >= 0.0


_SUMS = """
from lbmtune.backend.cpu import simd
many = simd.memory("float32", 8)
load, store = many.load, many.store


@simd.kernel("void(float32[::1], float32[::1])", parallel=False)
def sums(given, found):
    a, b = load(given, 0), load(given, 8)
    product = a * a
    store(found, 0, product + b)
    store(found, 8, b + product)
    store(found, 16, product - b)
    store(found, 24, b - product)
"""


@pytest.mark.skipif(vector_bits() < 256, reason="this processor has no such vectors")
def test_a_product_of_several_sums_is_rounded_with_each(tmp_path: Path) -> None:
    given, found = np.repeat(np.float32([1 + 2**-12, -1]), 8), np.empty(32, np.float32)
    import_text(tmp_path / "sums.py", _SUMS).sums(given, found)
    fused = 2**-11 + 2**-24  # a product that is rounded on its own loses the second term
    np.testing.assert_array_equal(found[:16], np.float32(fused))
    beside_one = np.float32(2 + 2**-11)
    np.testing.assert_array_equal(found[16:], np.repeat([beside_one, -beside_one], 8))


def test_a_cache_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write .*file/one.py: .*; set LBMTUNE_CACHE to a folder that can be"):
        import_text(tmp_path / "file" / "one.py", "")
