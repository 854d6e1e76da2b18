"""16-bit codes: the model in NumPy against the definition, and the conversions of kernels against the model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbmtune.backend.cpu.compilation.modules import import_text
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.catalogue.precision import HALF, STORAGES, Storage
from lbmtune.codegen.skeleton import skeleton
from tests.shim.device import COMPILER, HEADER, compile_text

FORMATS = {name: storage for name, storage in STORAGES.items() if storage.codes}
ALL = np.arange(1 << 16, dtype=np.uint16)

formats = st.sampled_from(sorted(FORMATS)).map(FORMATS.__getitem__)


def _number(storage: Storage, code: int) -> Fraction:
    """By the definition: (-1)^s 2^(E - bias) 1.m, subnormal where E = 0."""
    codes = storage.codes
    exponent, mantissa = divmod(code & 0x7FFF, 2**codes.mantissa_bits)
    one = Fraction(mantissa, 2**codes.mantissa_bits) + (1 if exponent else 0)
    return (-1) ** (code >> 15) * one * Fraction(2) ** (max(exponent, 1) - codes.bias)


def _finite(storage: Storage) -> np.ndarray:
    return ALL[np.isfinite(storage.codes.decode(ALL, np))]


@pytest.mark.parametrize("name", FORMATS)
def test_codes_stand_for_what_the_definition_says(name: str) -> None:
    storage = FORMATS[name]
    found = storage.codes.decode(ALL, np)
    assert found.dtype == np.float64
    for code in _finite(storage)[::7]:
        assert Fraction(found[code]) == _number(storage, int(code))


def test_half_is_that_of_numpy() -> None:
    """Every code, and numbers between two of them."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    numbers = codes.view(np.float16).astype(np.float64)
    assert np.array_equal(HALF.decode(codes, np), numbers, equal_nan=True)
    finite = numbers[np.isfinite(numbers)]
    between = np.concatenate([finite, finite * (1 + 2.0**-11), finite * (1 + 2.0**-12), finite + 2.0**-25])
    with np.errstate(over="ignore"):
        assert np.array_equal(HALF.encode(between, np), between.astype(np.float16).view(np.uint16))


def test_bf16_is_the_upper_half_of_a_float() -> None:
    floats = (ALL.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(FORMATS["bf16"].codes.decode(ALL, np).astype(np.float32), floats)


@pytest.mark.parametrize("name", FORMATS)
def test_every_number_comes_back(name: str) -> None:
    storage, codes = FORMATS[name], _finite(FORMATS[name])
    np.testing.assert_array_equal(storage.codes.encode(storage.codes.decode(codes, np), np), codes)
    np.testing.assert_array_equal(storage.stored(storage.deviations(codes, np), np), codes)


@pytest.mark.parametrize(
    ("name", "largest", "smallest", "finite"),
    [("fp16c", 2 - 2**-11, 2.0**-25, 1 << 16), ("bf16", 2.0**128 - 2.0**120, 2.0**-133, 2 * 0x7F80)],
)
def test_range(name: str, largest: float, smallest: float, finite: int) -> None:
    storage = FORMATS[name]
    numbers = storage.codes.decode(_finite(storage), np)
    assert numbers.size == finite
    assert numbers.max() == -numbers.min() == storage.codes.largest == largest
    assert numbers[numbers > 0].min() == storage.codes.smallest == smallest


@given(formats, st.floats(-1.9, 1.9))
def test_the_nearest_number_is_taken(storage: Storage, value: float) -> None:
    codes = storage.codes
    found = codes.decode(codes.encode(np.array([value]), np), np)[0]
    error = abs(Fraction(found) - Fraction(value))
    normal = 2.0 ** (1 - codes.bias)
    assert error <= max(Fraction(storage.epsilon) * abs(Fraction(value)), Fraction(codes.smallest) / 2)
    if abs(value) >= normal:
        assert error <= Fraction(storage.epsilon) * abs(Fraction(value))
    numbers = codes.decode(_finite(storage), np)
    assert abs(found - value) == abs(numbers - value).min()


@pytest.mark.parametrize("name", FORMATS)
def test_ties_go_to_the_even_code(name: str) -> None:
    codes = FORMATS[name].codes
    low = _finite(FORMATS[name])
    low = low[(low & 0x7FFF) < (low & 0x7FFF).max()]
    middle = (codes.decode(low, np) + codes.decode(low + np.uint16(1), np)) / 2
    np.testing.assert_array_equal(codes.encode(middle, np), low + (low & 1))


def test_what_is_too_large_or_no_number() -> None:
    values = np.array([2.0, 1e300, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(FORMATS["fp16c"].codes.encode(values, np) & 0x7FFF, [0x7FFF] * 5)
    found = FORMATS["bf16"].codes.decode(FORMATS["bf16"].codes.encode(values, np), np)
    np.testing.assert_array_equal(found, [2.0, np.inf, np.inf, -np.inf, np.nan])


def _floats(storage: Storage) -> np.ndarray:
    """Every number of the format, every middle of two, what lies beside those, and what lies beyond all."""
    finite = np.unique(storage.codes.decode(_finite(storage), np).astype(np.float32))
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    around = [np.nextafter(middle, np.float32(end)) for end in (np.inf, -np.inf)]
    beyond = np.float32([1e9, -1e9, 1.9998, 2.0, 1e-7, -1e-7, 0.0, -0.0, 3.4e38, np.inf, -np.inf])
    return np.concatenate([finite, middle, *around, beyond])


def _check(storage: Storage, decode: Callable[[Any], Any], encode: Callable[[Any], Any]) -> None:
    """Two conversions of arrays against the model; subnormal floats are left to the hardware's taste."""
    np.testing.assert_array_equal(decode(ALL), storage.codes.decode(ALL, np).astype(np.float32))
    floats = _floats(storage)
    floats = floats[(floats == 0) | (abs(floats) >= np.finfo(np.float32).tiny)]
    np.testing.assert_array_equal(encode(floats), storage.codes.encode(floats, np))
    lost = encode(np.full(16, np.nan, np.float32)) & 0x7FFF
    assert (lost == 0x7FFF).all() or np.isnan(storage.codes.decode(lost, np)).all()


_SHIM = """
extern "C" void decode(int n, const unsigned short* from, float* to) {
    for (int i = 0; i < n; ++i) to[i] = decoded(from[i]);
}
extern "C" void encode(int n, const float* from, unsigned short* to) {
    for (int i = 0; i < n; ++i) to[i] = i % 2 ? encoded_pair(from[i - 1], from[i]) >> 16 : encoded(from[i]);
}
"""


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("name", FORMATS)
def test_cuda_text_converts_as_the_model(name: str) -> None:
    text = f'#include "{HEADER}"\n{skeleton(f"cuda/shared/{name}.cu")}\n{_SHIM}'
    library = ctypes.CDLL(compile_text(text).image.decode())

    def call(function: str, given_: np.ndarray, kind: type) -> np.ndarray:
        found = np.empty(given_.size, kind)
        library[function](given_.size, ctypes.c_void_p(given_.ctypes.data), ctypes.c_void_p(found.ctypes.data))
        return found

    _check(FORMATS[name], lambda c: call("decode", c, np.float32), lambda f: call("encode", f, np.uint16))


_LOOP = """
from lbmtune.backend.cpu import simd
access = simd.memory("{compute}", {lanes}, "{codes}")
load, store = access.load, access.store
plain = simd.memory("{compute}", {lanes})
load_plain, store_plain = plain.load, plain.store


@simd.kernel("void(uint16[::1], {compute}[::1], int64)", parallel=False)
def decode(source, target, count):
    for i in range(0, count, {lanes}):
        store_plain(target, i, load(source, i))


@simd.kernel("void({compute}[::1], uint16[::1], int64)", parallel=False)
def encode(source, target, count):
    for i in range(0, count, {lanes}):
        store(target, i, load_plain(source, i))
"""


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("compute", "lanes"), [("float32", 1), ("float32", 8), ("float32", 16), ("float64", 4)])
def test_cpu_code_converts_as_the_model(name: str, compute: str, lanes: int, tmp_path: Path) -> None:
    if lanes * np.dtype(compute).itemsize * 8 > 2 * vector_bits():
        pytest.skip("this processor has no such vectors")
    text = _LOOP.format(compute=compute, lanes=lanes, codes=name)
    module = import_text(tmp_path / f"convert_{name}_{compute}_{lanes}.py", text)

    def call(function: Any, given_: np.ndarray, source: type, target: type) -> np.ndarray:
        padded = np.zeros(-(-given_.size // 16) * 16, source)
        padded[: given_.size] = given_
        found = np.empty(padded.size, target)
        function(padded, found, padded.size)
        return found[: given_.size]

    real = np.dtype(compute).type
    _check(
        FORMATS[name],
        lambda c: call(module.decode, c, np.uint16, real).astype(np.float32),
        lambda f: call(module.encode, f, real, np.uint16),
    )
