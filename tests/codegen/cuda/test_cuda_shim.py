"""Conformance: the CUDA text, run as C++ with threads as fibers, against the oracle."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from lbmtune.codegen.render import render
from lbmtune.measure.verification.verify import compare, verify
from tests.shim.device import COMPILER, HEADER, HostDevice, compile_on_host, compile_text
from tests.support.kernels.cuda_samples import (
    LATTICE_NAMES,
    LAYOUT_NAMES,
    SCHEME_NAMES,
    VECTOR_SCHEMES,
    Sample,
    config,
    flows,
    label,
    sampled,
)
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def _walled(scheme: str, layout: str, lattice: str) -> Sample:
    cells = 4 if layout not in ("aos", "bundle") and scheme in VECTOR_SCHEMES else 1
    return flows(lattice, "bgk")["cavity"], config(scheme=scheme, layout=layout, cells_per_thread=cells)


def _check(sample: Sample) -> None:
    program = render(*sample)
    found = verify(program, compile_on_host(program), HostDevice())
    assert found.passed, found


@pytest.mark.parametrize(
    "sample", [_walled(*names) for names in product(SCHEME_NAMES, LAYOUT_NAMES, LATTICE_NAMES)], ids=label
)
def test_every_scheme_layout_and_lattice_with_walls(sample: Sample) -> None:
    _check(sample)


@pytest.mark.parametrize("boundary", ["branch", "predicated"])
@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
def test_a_ghost_layer_beside_words_of_cells(scheme: str, boundary: str) -> None:
    """As in Tran, Lee and Hong 2017: no branch at the faces, and types of cells."""
    solid = replace(flows("d3q19", "bgk")["grinder"], geometry="blocks:fraction=0.3")
    for case in (flows("d3q19", "bgk")["cavity"], flows("d2q9", "bgk")["cavity"], solid):
        _check((case, config(scheme=scheme, wrap="ghost", flags="memory", boundary=boundary)))


@pytest.mark.parametrize("layout", LAYOUT_NAMES)
@pytest.mark.parametrize("scheme", [*VECTOR_SCHEMES, "two-step"])
def test_addresses_in_shared_memory(scheme: str, layout: str) -> None:
    cases = flows("d3q19", "bgk")
    _check((cases["cavity"], config(scheme=scheme, layout=layout, addresses="shared", flags="memory")))
    _check((cases["channel"], config(scheme=scheme, layout=layout, addresses="shared", z_cells=3, wrap="ghost")))


def test_addresses_in_shared_memory_are_there_before_they_are_read() -> None:
    """Also by blocks of fewer threads than directions; the launch gives the bytes."""
    sample = flows("d3q19", "bgk")["grinder"], config(block=(8, 2, 1), addresses="shared")
    program = render(*sample)
    assert [launch.shared_bytes for step in program.period for launch in step] == [19 * 8]
    hasty = replace(program, source=program.source.replace("    __syncthreads();\n", ""))
    assert hasty.source != program.source
    assert not verify(hasty, compile_on_host(hasty), HostDevice()).passed
    _check(sample)
    _check((sample[0], config(block=(8, 2, 1), addresses="shared", cells_per_thread=4)))


def test_blocks_with_rings_need_their_barrier_and_their_refresh() -> None:
    """What a block overwrites too early, or does not find in its ring, shows in every precision."""
    for storage in ("fp64", "fp32", "fp16s"):
        sample = flows("d3q19", "bgk")["grinder"], config(scheme="ghost-cell", storage=storage, block=(16, 2, 2))
        _check(sample)
        program = render(*sample)
        text = program.source.replace("    __syncthreads();  // the whole block has read", "")
        assert text != program.source
        hasty = replace(program, source=text)
        assert not verify(hasty, compile_on_host(hasty), HostDevice()).passed
        stale = replace(program, period=tuple(step[1:] for step in program.period))
        assert not verify(stale, compile_on_host(stale), HostDevice()).passed


@pytest.mark.thinned(8)
@pytest.mark.parametrize("sample", sampled(60, seed=9), ids=label)
def test_all_axes_together(sample: Sample) -> None:
    _check(sample)


@pytest.mark.parametrize("scheme", VECTOR_SCHEMES)
@pytest.mark.parametrize("block_x", [8, 64])
def test_rows_that_fill_the_warp_and_rows_that_do_not(scheme: str, block_x: int) -> None:
    """Verification takes a row that leaves lanes idle; that of a whole segment is here."""
    case = flows("d2q9", "bgk")["box"]
    program = render(case, config(scheme=scheme, cells_per_thread=4, block=(block_x, 2, 1)))
    lanes = min(32, block_x)
    (partly,) = program.config.extra_domains(case)
    assert len(partly) == 3
    assert partly[0] == 4 * lanes * 3 // 4
    binary, device = compile_on_host(program), HostDevice()
    for nx in (partly[0], 4 * lanes):
        assert compare(program, binary, device, replace(case, domain=(nx, *partly[1:])), 2).passed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(11, 41))
def test_many_more_of_all_axes(seed: int) -> None:
    for sample in sampled(20, seed):
        _check(sample)


def test_every_value_of_every_axis_is_in_the_sample() -> None:
    seen = sampled(60, seed=9)
    for axis, values in (("scheme", SCHEME_NAMES), ("layout", LAYOUT_NAMES), ("cells_per_thread", (1, 2, 4, 8))):
        assert {one.flat()[axis] for _, one in seen} == set(values)
    assert {(case.lattice, case.flow, case.collision) for case, _ in seen} >= set(
        product(LATTICE_NAMES, ("box", "cavity", "channel", "grinder"), ("bgk",))
    )


_CONVERSIONS = f"""#include "{HEADER}"
extern "C" void widen(int n, const unsigned short* from, float* to) {{
    for (int i = 0; i < n; ++i) to[i] = half_to_float(from[i]);
}}
extern "C" void narrow(int n, const float* from, unsigned short* to) {{
    for (int i = 0; i < n; ++i) to[i] = float_to_half(from[i]);
}}
"""


def test_conversion_of_halves_is_that_of_numpy() -> None:
    """The shim's conversions stand for the hardware's: every half, and floats at and around every boundary."""
    library = ctypes.CDLL(compile_text(_CONVERSIONS).image.decode())
    halves = np.arange(1 << 16, dtype=np.uint16)
    wide = np.empty(1 << 16, np.float32)
    library.widen(halves.size, ctypes.c_void_p(halves.ctypes.data), ctypes.c_void_p(wide.ctypes.data))
    np.testing.assert_array_equal(wide, halves.view(np.float16).astype(np.float32))
    finite = np.sort(wide[np.isfinite(wide)])
    middle = (finite[1:] + finite[:-1]) / 2
    around = [np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf)]
    floats = np.concatenate([finite, middle, *around, np.float32([1e9, -1e9, 65519.9, 65520, np.inf])])
    narrowed = np.empty(floats.size, np.uint16)
    library.narrow(floats.size, ctypes.c_void_p(floats.ctypes.data), ctypes.c_void_p(narrowed.ctypes.data))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrowed, floats.astype(np.float16).view(np.uint16))


def test_what_was_compiled_goes_with_the_process(tmp_path: Path) -> None:
    script = "from tests.shim import device; device._folder().joinpath('text.cpp').touch()"
    command, here = [sys.executable, "-c", script], str(ROOT)
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    subprocess.run(command, check=True, env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": path})
    assert not list(tmp_path.iterdir())
