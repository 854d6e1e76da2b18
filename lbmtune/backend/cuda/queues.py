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


def recorded_in(cupy: Any, index: int, stream: Any, run: Callable[[], None]) -> Callable[[], None]:
    """Return a function that launches in a stream what `run` enqueues there and in streams joined to it, as one graph.

    index: of the GPU of the stream.
    """
    runtime = cupy.cuda.runtime
    with cupy.cuda.Device(index):
        stream.begin_capture()
        try:
            run()
        except Exception:
            with suppress(runtime.CUDARuntimeError):  # the failed launch is the error to report
                runtime.streamEndCapture(stream.ptr)
            raise
        executable = _Executable(runtime, runtime.streamEndCapture(stream.ptr))

    def replay() -> None:
        with cupy.cuda.Device(index):
            runtime.graphLaunch(executable.handle, stream.ptr)

    return replay


class _Executable:
    """An instantiated graph."""

    def __init__(self, runtime: Any, graph: int) -> None:
        self._runtime, handle = runtime, ctypes.c_void_p()
        status = driver().cuGraphInstantiateWithFlags(
            ctypes.byref(handle), ctypes.c_void_p(graph), ctypes.c_ulonglong(_USE_NODE_PRIORITY)
        )
        runtime.graphDestroy(graph)
        if status:
            raise runtime.CUDARuntimeError(status)
        self.handle = handle.value

    def __del__(self) -> None:
        with suppress(Exception):  # the runtime may be gone at exit
            self._runtime.graphExecDestroy(self.handle)
