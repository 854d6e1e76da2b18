"""Kernels that read elements of device memory for the host, and compare bytes with a value, run by the host shim."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.protocol import DeviceFaultError
from tests.backend.test_cuda_device import CudaDevice, CUDADriverError, FakeCupy, open_cuda
from tests.shim.device import QUICKLY_MADE, _header, compile_text

_OPERANDS = {
    **{
        f"gather_{size}": (f"const {kind}*", "const long long*", f"{kind}*", "long long")
        for size, kind in {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}.items()
    },
    "compare": ("const unsigned long long*", "unsigned", "unsigned*"),
}
DTYPES = ("uint8", "float16", "uint16", "float32", "float64")


def launcher(entry: str) -> str:
    values = ", ".join(f"*static_cast<{kind}*>(values[{n}])" for n, kind in enumerate(_OPERANDS[entry]))
    return (
        f"static void call_{entry}(void** values) {{ {entry}({values}); }}\n"
        f'extern "C" size_t run_{entry}(const unsigned* grid, const unsigned* block, void** values) {{\n'
        f"    return host::launch(call_{entry}, grid, block, values, host::as_loop, 0);\n}}\n"
    )


class RawModule:
    """What CuPy's class of that name does, on the host."""

    def __init__(self, code: str, options: tuple[str, ...]) -> None:
        defined = [one.removeprefix("-D").replace("=", " ") for one in options]
        macros = "".join(f"#define {one}\n" for one in defined)
        text = f'#include "{_header(QUICKLY_MADE)}"\n{macros}{code}\n{"".join(map(launcher, _OPERANDS))}'
        self._library = ctypes.CDLL(compile_text(text).image.decode())

    def get_function(self, entry: str) -> Any:
        def run(grid: tuple[int, ...], block: tuple[int, ...], operands: tuple[Any, ...]) -> None:
            cells = [np.array([operand]) for operand in operands]
            pointers = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
            whole = [(ctypes.c_uint * 3)(*(*sizes, 1, 1)[:3]) for sizes in (grid, block)]
            assert not self._library[f"run_{entry}"](*whole, pointers)

        return run


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    cupy: Any = FakeCupy().module()
    cupy.RawModule = RawModule
    cupy.cuda.alloc_pinned_memory = bytearray
    cupy.cuda.Device = _Current
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return open_cuda(0)


class _Current:
    def __init__(self, _: int) -> None: ...

    def use(self) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (256,), (3, 5, 7, 9), (0, 4)])
def test_elements_come_in_the_order_and_shape_of_their_indices(
    device: CudaDevice, dtype: str, shape: tuple[int, ...]
) -> None:
    values = np.arange(1000).astype(dtype)
    indices = np.random.default_rng(1).integers(1000, size=shape)
    found = device.gathered(values, indices)
    assert (found.dtype, found.shape) == (values.dtype, shape)
    np.testing.assert_array_equal(found, values[indices])
    turned = indices.T  # not contiguous
    np.testing.assert_array_equal(device.gathered(values, turned), values[turned])


def test_what_was_read_stays_while_memory_is_used_again(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page-locked memory grows to the most that was read at once."""
    locked: list[int] = []
    lock = device.host_empty
    monkeypatch.setattr(device, "host_empty", lambda size, dtype: locked.append(size) or lock(size, dtype))
    values = np.arange(1000.0)
    first = device.gathered(values, np.arange(100))
    for size in (3, 100, 64, 1):
        device.gathered(values, np.full(size, 999))
    assert device.filled([np.full(5, 1, np.uint8)], 1)
    np.testing.assert_array_equal(first, values[:100])
    assert locked == [1024, 1024]
    device.gathered(values.astype("float32"), np.zeros(500, np.int64))
    assert locked == [1024, 1024, 4096, 2048]


@pytest.mark.parametrize("size", [1, 255, 257, 100_003])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_one_other_byte_of_any_part_is_seen(device: CudaDevice, size: int, which: int) -> None:
    parts = [np.full(size + n, 0xFF, np.uint8) for n in range(3)]
    parts[2] = parts[2][1:]  # at an odd address
    assert device.filled(parts, 0xFF)
    assert not device.filled(parts, 0x00)
    for at in {0, parts[which].size // 2, parts[which].size - 1}:
        parts[which][at] = 0xFE
        assert not device.filled(parts, 0xFF)
        parts[which][at] = 0xFF
    assert device.filled(parts, 0xFF)


def test_parts_without_bytes_are_filled(device: CudaDevice) -> None:
    empty = np.empty(0, np.uint8)
    assert device.filled([], 0xFF)
    assert device.filled([empty], 0xFF)
    assert device.filled([empty, np.full(3, 7, np.uint8)], 7)
    assert not device.filled([empty, np.full(3, 7, np.uint8)], 8)


def test_a_launch_that_fails_is_a_fault_of_the_device(device: CudaDevice) -> None:
    def fails(*_: Any) -> None:
        raise CUDADriverError(700, "an illegal memory access was encountered")

    device._host_reads._module.get_function = lambda entry: fails
    for read in (lambda: device.gathered(np.zeros(3), np.array([1])), lambda: device.filled([np.zeros(1, "u1")], 0)):
        with pytest.raises(DeviceFaultError, match="illegal memory access"):
            read()
