"""NUMA nodes: the processors of each, and memory that is bound to one. Sources: numa(7), mbind(2), get_mempolicy(2)."""

from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lbmtune.backend.protocol import OutOfMemoryError
from lbmtune.catalogue.backend_records import ANY_NODE, node_number

_NODES = Path("/sys/devices/system/node")
_CALLS = {"x86_64": (237, 239), "aarch64": (235, 236)}
"""Numbers of the system calls mbind and get_mempolicy, for which the C library has no functions."""
_BIND, _NODE_OF_ADDRESS = 2, 3
"""MPOL_BIND, and MPOL_F_NODE with MPOL_F_ADDR."""


def nodes() -> tuple[frozenset[int], ...]:
    """Return the processors of each NUMA node by its number; those of a node of memory alone are none."""
    found = {int(one.name[4:]): _processors(one / "cpulist") for one in _NODES.glob("node[0-9]*")}
    return tuple(found.get(number, frozenset()) for number in range(max(found, default=-1) + 1))


def _processors(file: Path) -> frozenset[int]:
    try:
        parts = file.read_text(encoding="ascii").strip().split(",")
    except OSError:
        return frozenset()
    ends = [tuple(map(int, part.split("-"))) for part in parts if part]
    return frozenset(processor for end in ends for processor in range(end[0], end[-1] + 1))


def processors_of(numa: str) -> frozenset[int]:
    """Return the processors of a node; none of 'any', or of a node of memory alone."""
    return frozenset() if numa == ANY_NODE else nodes()[node_number(numa)]


def bind_memory(array: npt.NDArray[np.uint8], numa: str) -> None:
    """Bind the pages of an array that nothing has touched yet to a node. Raises OutOfMemoryError."""
    if numa == ANY_NODE:
        return
    node = node_number(numa)
    mask = (ctypes.c_ulong * 16)()
    width = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask[node // width] = 1 << node % width
    address, size = ctypes.c_void_p(array.ctypes.data), ctypes.c_ulong(array.nbytes)
    if _call(0, address, size, _BIND, mask, ctypes.c_ulong(16 * width), 0):
        raise OutOfMemoryError(f"pinning={numa}: the system binds no memory to it: {os.strerror(ctypes.get_errno())}")


def check_node(array: npt.NDArray[np.uint8], numa: str) -> None:
    """Raise OutOfMemoryError if the first page of an array lies on another node than the one that was asked for."""
    if numa != ANY_NODE and (found := node_of(array)) != node_number(numa):
        raise OutOfMemoryError(f"pinning={numa}: the memory lies on node {found}")


def node_of(array: npt.NDArray[np.uint8]) -> int:
    """Return the node of the first page of an array; -1 if the system does not tell."""
    node = ctypes.c_int(-1)
    address = ctypes.c_void_p(array.ctypes.data)
    failed = _call(1, ctypes.byref(node), None, ctypes.c_ulong(0), address, ctypes.c_ulong(_NODE_OF_ADDRESS))
    return -1 if failed else node.value


def _call(which: int, *arguments: object) -> int:
    numbers = _CALLS.get(platform.machine())
    if numbers is None:
        ctypes.set_errno(38)  # ENOSYS
        return -1
    return int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(numbers[which]), *arguments))
