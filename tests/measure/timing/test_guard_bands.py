"""Bands around the arrays of a pooled device show what is written outside them."""

import numpy as np
import pytest

from lbmtune.backend.cpu.device import CpuDevice
from lbmtune.backend.protocol import Array, Placing
from lbmtune.measure.timing.guard_bands import GUARD_BYTES
from lbmtune.measure.timing.pooled_device import PooledDevice, pooled_bytes
from lbmtune.measure.timing.state import WrongResultError
from tests.support.devices.fake_device import FakeDevice

NAMES = ("f0", "f1")
SIZES = [8000, 4000]


def arrays(pooled: PooledDevice, *, block: bool = True) -> tuple[Array, Array]:
    pooled.reset(pooled_bytes(SIZES) if block else 0)
    return pooled.empty(1000, "float64"), pooled.empty(1000, "float32")


def write(array: Array, element: int, value: float = 0.0) -> None:
    """Write an element of an array's type at a distance from its start."""
    whole = array.base
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    at = array.ctypes.data - whole.ctypes.data + element * array.itemsize
    whole.view(np.uint8)[at : at + array.itemsize] = np.array([value], array.dtype).view(np.uint8)


@pytest.mark.parametrize("block", [True, False])
def test_what_stays_within_is_no_fault(block: bool) -> None:
    pooled = PooledDevice(FakeDevice())
    for array in arrays(pooled, block=block):
        array.fill(1.0)
    pooled.check_guards(NAMES)


@pytest.mark.parametrize("block", [True, False])
@pytest.mark.parametrize(
    ("which", "element", "told"),
    [
        (0, 1000, "f0: up to 8 bytes behind it"),
        (0, -5, "f0: up to 40 bytes before it"),
        (1, 1000, "f1: up to 4 bytes behind it"),
        (1, -5, "f1: up to 20 bytes before it"),
        (1, 1000 + (1 << 18), "f1: up to 1048580 bytes behind it"),
    ],
)
def test_a_write_outside_is_told_from_the_nearer_array(block: bool, which: int, element: int, told: str) -> None:
    pooled = PooledDevice(FakeDevice())
    write(arrays(pooled, block=block)[which], element)
    with pytest.raises(WrongResultError, match=f"^writes outside buffer {told}$"):
        pooled.check_guards(NAMES)
    arrays(pooled, block=block)
    pooled.check_guards(NAMES)


def test_arrays_of_later_simulations_have_the_names_of_the_first() -> None:
    pooled = PooledDevice(FakeDevice())
    arrays(pooled)
    third = pooled.empty(10, "float64")
    write(third, 10)
    with pytest.raises(WrongResultError, match="buffer f0: up to 8 bytes"):
        pooled.check_guards(NAMES)


def test_bands_keep_arrays_aligned_and_apart() -> None:
    pooled = PooledDevice(CpuDevice())
    first, second = arrays(pooled)
    assert first.ctypes.data % GUARD_BYTES == second.ctypes.data % GUARD_BYTES == 0
    assert second.ctypes.data - first.ctypes.data >= 8000 + GUARD_BYTES
    fresh = pooled.empty(10, "float64")
    assert fresh.ctypes.data % GUARD_BYTES == 0


def test_only_the_arrays_of_states_share_the_block() -> None:
    """What a simulation keeps beside its state is not overwritten by the state of another one."""
    pooled = PooledDevice(FakeDevice())
    pooled.reset(pooled_bytes([64000, 64000, 64000]))
    arrays(pooled)
    words = pooled.empty(100, "uint32")
    words.fill(7)
    pooled.reset(pooled_bytes([64000, 64000, 64000]))
    for _ in range(3):
        pooled.empty(8000, "float64").fill(1.0)
    assert (words == 7).all()


@pytest.mark.parametrize("element", [1000, -5])
def test_the_margins_of_a_mapping_of_its_own_are_guarded(element: int) -> None:
    pooled = PooledDevice(CpuDevice())
    placed = pooled.empty(1000, "float64", Placing("normal", "serial", 1, 1))
    placed.fill(1.0)
    pooled.check_guards(NAMES)
    write(placed, element)
    with pytest.raises(WrongResultError, match="buffer f0: up to"):
        pooled.check_guards(NAMES)
