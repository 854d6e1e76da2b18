"""Streams of a GPU, and graphs of what is enqueued in streams of several GPUs.

A captured launch keeps the priority of its stream if the graph is instantiated so, which CuPy does not do. Source:
cuGraphInstantiateWithFlags in cuda.h (since CUDA 11.7).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lbmtune.backend.cuda.programmatic_launch import driver

_USE_NODE_PRIORITY = 8
_FIRST, _USUAL = -5, 0
"""Priorities of streams; CUDA takes the highest one for one that is higher."""


class CudaQueue:
    """A stream of a GPU, which does not wait for the default one."""

    def __init__(self, cupy: Any, index: int, *, first: bool) -> None:
        self._cupy, self._index = cupy, index
        with cupy.cuda.Device(index):
            self.stream = cupy.cuda.Stream(non_blocking=True, priority=_FIRST if first else _USUAL)

    def run(self, work: Callable[[], None]) -> None:
        """Enqueue what a function enqueues in the current stream."""
        with self._cupy.cuda.Device(self._index), self.stream:
            work()

    def mark(self, *, timed: bool = False) -> Any:
        """Return an event."""
        with self._cupy.cuda.Device(self._index):
            event = self._cupy.cuda.Event(disable_timing=not timed)
            event.record(self.stream)
        return event

    def wait(self, mark: Any) -> None:
        """Let later work wait for an event of any GPU."""
        self.stream.wait_event(mark)

    def seconds(self, first: Any, last: Any) -> float:
        """Return the seconds between two timed events, once both have happened."""
        last.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(first, last)) / 1e3


class Graph:
    """A recording of what a function enqueues in a stream of the current GPU, and in streams joined to it.

    Nothing of it runs before `launch`.
    """

    def __init__(self, runtime: Any, stream: Any, run: Callable[[], None]) -> None:
        self._runtime, handle = runtime, ctypes.c_void_p()
        stream.begin_capture()
        try:
            run()
        except Exception:
            with suppress(runtime.CUDARuntimeError):  # the failed launch is the error to report
                runtime.streamEndCapture(stream.ptr)
            raise
        graph = runtime.streamEndCapture(stream.ptr)
        status = driver().cuGraphInstantiateWithFlags(
            ctypes.byref(handle), ctypes.c_void_p(graph), ctypes.c_ulonglong(_USE_NODE_PRIORITY)
        )
        runtime.graphDestroy(graph)
        if status:
            raise runtime.CUDARuntimeError(status)
        self._handle = handle.value

    def launch(self, stream: Any) -> None:
        """Enqueue all of it in a stream of the GPU that was current when it was made, which has to be so again."""
        self._runtime.graphLaunch(self._handle, stream.ptr)

    def __del__(self) -> None:
        with suppress(Exception):  # the runtime may be gone at exit
            self._runtime.graphExecDestroy(self._handle)
