"""Conformance: the CUDA text, run as C++ with threads as fibers, against the oracle."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from shim.device import COMPILER, HostDevice, compile_on_host

from cuda_samples import LATTICE_NAMES, LAYOUT_NAMES, SCHEME_NAMES, Sample, config, flows, label, sampled
from lbmtune.codegen.render import render
from lbmtune.measure.verify import verify

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")


def _walled(scheme: str, layout: str, lattice: str) -> Sample:
    cells = 1 if layout == "aos" else 4
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


@pytest.mark.parametrize("sample", sampled(60, seed=7), ids=label)
def test_all_axes_together(sample: Sample) -> None:
    _check(sample)


@pytest.mark.slow
@pytest.mark.parametrize("sample", sampled(600, seed=11), ids=label)
def test_many_more_of_all_axes(sample: Sample) -> None:
    _check(sample)


def test_every_value_of_every_axis_is_in_the_sample() -> None:
    seen = sampled(60, seed=7)
    for axis, values in (("scheme", SCHEME_NAMES), ("layout", LAYOUT_NAMES), ("cells_per_thread", (1, 2, 4, 8))):
        assert {getattr(one, axis) for _, one in seen} == set(values)
    assert {(case.lattice, case.flow, case.collision) for case, _ in seen} >= set(
        product(LATTICE_NAMES, ("box", "cavity", "channel", "grinder"), ("bgk",))
    )


def test_conversion_of_halves_is_that_of_numpy(tmp_path: object) -> None:
    """The shim's conversions stand for the hardware's: every half, and floats around every rounding boundary."""
    import ctypes

    from shim.device import compile_text
    from shim.device import HEADER as header

    library = ctypes.CDLL(
        compile_text(
            f'#include "{header}"\n'
            'extern "C" void widen(int n, const unsigned short* h, float* f) {'
            " for (int i = 0; i < n; ++i) f[i] = half_to_float(h[i]); }\n"
            'extern "C" void narrow(int n, const float* f, unsigned short* h) {'
            " for (int i = 0; i < n; ++i) h[i] = float_to_half(f[i]); }\n"
        ).image.decode()
    )
    halves = np.arange(1 << 16, dtype=np.uint16)
    wide = np.empty(1 << 16, np.float32)
    library.widen(1 << 16, halves.ctypes.data_as(ctypes.c_void_p), wide.ctypes.data_as(ctypes.c_void_p))
    np.testing.assert_array_equal(wide, halves.view(np.float16).astype(np.float32))
    finite = np.sort(wide[np.isfinite(wide)])
    middle = (finite[1:] + finite[:-1]) / 2
    floats = np.concatenate(
        [
            finite,
            middle,
            np.nextafter(middle, np.float32(np.inf)),
            np.nextafter(middle, -np.float32(np.inf)),
            np.float32([1e9, -1e9, 65519.9, 65520, np.inf]),
        ]
    ).astype(np.float32)
    narrowed = np.empty(floats.size, np.uint16)
    library.narrow(floats.size, floats.ctypes.data_as(ctypes.c_void_p), narrowed.ctypes.data_as(ctypes.c_void_p))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(narrowed, floats.astype(np.float16).view(np.uint16))
