"""Processes that exchange arrays of their GPUs by NCCL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from lbmtune.backend.cuda.attributes import cupy
from lbmtune.backend.protocol import DeviceFaultError
from lbmtune.backend.ranks import Rank, shared
from lbmtune.errors import DeviceUnavailableError

Array = Any


class NcclGroup:
    """All ranks of a run. Each has one GPU, which is the current one of its process."""

    def __init__(self, found: Any, nccl: Any, place: Rank) -> None:
        """Join the other ranks, and wait for them. Raises DeviceUnavailableError."""
        self._cupy, self._nccl = found, nccl
        name = shared(place, lambda: bytes(one & 255 for one in nccl.get_unique_id()))
        try:
            self._all = _communicator(nccl, place, name)
        except nccl.NcclError as error:
            raise DeviceUnavailableError(
                f"rank {place.number} of {place.count} cannot join the others by NCCL: {error}; NCCL_DEBUG=INFO says "
                "more. Each rank needs a GPU of its own."
            ) from error

    def exchange(self, sent: Sequence[tuple[int, Array]], received: Sequence[tuple[int, Array]]) -> None:
        """Enqueue in the current stream that arrays go to other ranks, and that arrays are filled by other ranks.

        Raises DeviceFaultError.
        """
        stream, byte = self._cupy.cuda.get_current_stream().ptr, self._nccl.NCCL_UINT8
        with self._faults():
            self._nccl.groupStart()
            for rank, array in sent:
                self._all.send(array.data.ptr, array.nbytes, byte, rank, stream)
            for rank, array in received:
                self._all.recv(array.data.ptr, array.nbytes, byte, rank, stream)
            self._nccl.groupEnd()

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks, once each of them has called this. Raises DeviceFaultError."""
        held = self._cupy.asarray([value], dtype="float64")
        stream = self._cupy.cuda.get_current_stream().ptr
        with self._faults():
            place, kind = held.data.ptr, self._nccl.NCCL_FLOAT64
            self._all.allReduce(place, place, 1, kind, self._nccl.NCCL_MAX, stream)
        return float(held[0])

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._nccl.NcclError as error:
            raise DeviceFaultError(f"NCCL: {error}") from error


def _communicator(nccl: Any, place: Rank, name: bytes) -> Any:
    try:
        return nccl.NcclCommunicator(place.count, name, place.number)
    except TypeError:  # before CuPy 14 a name was a tuple of signed numbers
        signed = tuple(one - 256 if one > 127 else one for one in name)
        return nccl.NcclCommunicator(place.count, signed, place.number)


def _module() -> Any:
    """Return the module of CuPy, whose attribute `available` says whether there is a library."""
    from cupy.cuda import nccl

    return nccl


@cache
def joined(place: Rank) -> NcclGroup:
    """Return the group of a rank, which joins the others once in a process. Raises DeviceUnavailableError."""
    found = cupy()
    nccl = _module()
    if not nccl.available:
        raise DeviceUnavailableError(
            "ranks need NCCL, and CuPy finds no libnccl.so.2; install nvidia-nccl-cu13 or nvidia-nccl-cu12, or the "
            "NCCL of the system, or leave --ranks out."
        )
    found.cuda.Device(place.local).use()
    return NcclGroup(found, nccl, place)
