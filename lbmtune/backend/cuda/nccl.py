"""Processes that exchange arrays of their GPUs by NCCL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Thread
from typing import Any

from lbmtune.backend.cuda.attributes import cupy
from lbmtune.backend.protocol import DeviceFaultError
from lbmtune.backend.ranks import Rank, meet, watch
from lbmtune.errors import DeviceUnavailableError

Array = Any
GRACE_S = 5.0
"""Seconds in which what a rank sent before it ended has to arrive."""
_NOBODY = -1


class NcclGroup:
    """All ranks of a run. Each has one GPU, which is the current one of its process."""

    def __init__(self, found: Any, nccl: Any, place: Rank) -> None:
        """Join the other ranks, and wait for them. Raises DeviceUnavailableError."""
        self._cupy, self._nccl = found, nccl
        met = meet(place, lambda: bytes(one & 255 for one in nccl.get_unique_id()))
        self._place, self._ended, self._abandoned = place, _NOBODY, _NOBODY
        try:
            self._all = _communicator(nccl, place, met.content)
        except nccl.NcclError as error:
            raise DeviceUnavailableError(
                f"rank {place.number} of {place.count} cannot join the others by NCCL: {error}; NCCL_DEBUG=INFO says "
                "more. Each rank needs a GPU of its own."
            ) from error
        watch(met, self._one_ended)

    def check(self, *, more: bool) -> None:
        """Raise DeviceFaultError if another rank has ended before what was enqueued was done, or before more of it.

        more: whether more is to be enqueued.
        """
        missing = max(self._abandoned, self._ended if more else _NOBODY)
        if missing != _NOBODY:
            raise DeviceFaultError(f"rank {missing} has ended, and rank {self._place.number} needs what it sends")

    def _one_ended(self, rank: int) -> None:
        """Note that a rank has ended, and give up what waits for it: the GPU would wait without end."""
        self._ended = rank
        done = Thread(target=self._cupy.cuda.Device(self._place.local).synchronize, daemon=True)
        done.start()
        done.join(GRACE_S)  # what the rank had sent before it ended still arrives
        if done.is_alive():
            self._abandoned = rank
            self._all.abort()

    def exchange(self, sent: Sequence[tuple[int, Array]], received: Sequence[tuple[int, Array]]) -> None:
        """Enqueue in the current stream that arrays go to other ranks, and that arrays are filled by other ranks.

        Raises DeviceFaultError.
        """
        stream, byte = self._cupy.cuda.get_current_stream().ptr, self._nccl.NCCL_UINT8
        self.check(more=True)
        with self._faults():
            self._nccl.groupStart()
            for rank, array in sent:
                self._all.send(array.data.ptr, array.nbytes, byte, rank, stream)
            for rank, array in received:
                self._all.recv(array.data.ptr, array.nbytes, byte, rank, stream)
            self._nccl.groupEnd()

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks, once each of them has called this. Raises DeviceFaultError."""
        self.check(more=True)
        held = self._cupy.asarray([value], dtype="float64")
        stream = self._cupy.cuda.get_current_stream().ptr
        with self._faults():
            place, kind = held.data.ptr, self._nccl.NCCL_FLOAT64
            self._all.allReduce(place, place, 1, kind, self._nccl.NCCL_MAX, stream)
        found = float(held[0])
        self.check(more=False)
        return found

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._nccl.NcclError as error:
            self.check(more=True)
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
