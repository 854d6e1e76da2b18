"""NVIDIA GPUs through CuPy: memory, launches, graphs and timing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.cuda.attributes import Attributes, cupy, device_count, environment, limits
from lbmtune.backend.cuda.host_reads import HostReads
from lbmtune.backend.cuda.nvml import Monitor
from lbmtune.backend.cuda.programmatic_launch import launch_dependent
from lbmtune.backend.cuda.queues import CudaQueue, Graph
from lbmtune.backend.protocol import Array, Binary, DeviceFaultError, OutOfMemoryError, Placing, TooManyResourcesError
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Launch, Program
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Conditions, Environment, Resources

_INVALID_VALUE, _OUT_OF_MEMORY, _OUT_OF_RESOURCES, _TOO_MANY_AT_ONCE = 1, 2, 701, 720
_PEER_ACCESS_ALREADY_ENABLED = 704
_STATIC_SHARED_BYTES = 48 << 10
"""Dynamic shared memory beyond this must be enabled per kernel."""


@dataclass(frozen=True)
class CudaExecutable:
    """A loaded cubin. functions: by entry."""

    device: CudaDevice
    module: Any
    functions: dict[str, Any]
    resources: Resources

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Array | int | float]) -> None:
        """Enqueue one launch. Raises TooManyResourcesError."""
        self.device.launch(self.functions[launch.entry], launch, grid, tuple(arguments))

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a CUDA graph of the launches. Raises DeviceFaultError, TooManyResourcesError."""
        return self.device.recorded(run)


class CudaDevice:
    """One GPU of this process. Memory is device memory from CuPy's pool."""

    def __init__(self, cupy: Any, index: int) -> None:
        self._cupy, self._index = cupy, index
        self._runtime, self._driver = cupy.cuda.runtime, cupy.cuda.driver
        self._attributes = Attributes(self._runtime, index)
        self._monitor = Monitor(self._runtime.deviceGetPCIBusId(index))

    @property
    def xp(self) -> ModuleType:
        """Return the module cupy."""
        module: ModuleType = self._cupy
        return module

    @cached_property
    def limits(self) -> Limits:
        """Return the limits of the device and of its architecture, and the memory that was free when first read."""
        return limits(self._attributes, int(self._runtime.memGetInfo()[0]))

    @cached_property
    def environment(self) -> Environment:
        """Return the GPU, its driver and the compiler for it."""
        return environment(self._attributes, self._monitor)

    @property
    def multiprocessors(self) -> int:
        """Return the number of streaming multiprocessors."""
        return self._attributes["MultiProcessorCount"]

    @property
    def caches_bytes(self) -> dict[str, int]:
        """Return the bytes of each cache level."""
        return {"L2": self._attributes["L2CacheSize"]}

    def empty(self, elements: int, dtype: str, _placing: Placing | None = None) -> Array:
        """Return an array that starts at a multiple of 256 bytes. Raises OutOfMemoryError."""
        try:
            return self._cupy.empty(elements, dtype)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfMemoryError(str(error)) from error

    def host_empty(self, elements: int, dtype: str) -> Array:
        """Return page-locked memory of the host, which is copied by DMA. Raises OutOfMemoryError."""
        size = elements * np.dtype(dtype).itemsize
        try:
            memory = self._cupy.cuda.alloc_pinned_memory(size)
        except (self._runtime.CUDARuntimeError, MemoryError) as error:
            raise OutOfMemoryError(str(error)) from error
        return np.frombuffer(memory, dtype, elements)

    def load(self, program: Program, binary: Binary) -> CudaExecutable:
        """Load a cubin. Raises TooManyResourcesError, OutOfMemoryError, DeviceFaultError."""
        module = self._cupy.cuda.function.Module()
        try:
            module.load(binary.image)
            functions = {entry: module.get_function(binary.names.get(entry, entry)) for entry in program.entries}
            for launch in (launch for step in program.period for launch in step):
                self._allow_shared(functions[launch.entry], launch.shared_bytes)
        except self._driver.CUDADriverError as error:
            if error.status == _OUT_OF_MEMORY:
                raise OutOfMemoryError(str(error)) from error
            if error.status == _INVALID_VALUE:
                raise TooManyResourcesError(str(error)) from error
            raise DeviceFaultError(f"the driver refused the binary: {error}") from error
        return CudaExecutable(self, module, functions, binary.resources)

    def launch(self, function: Any, launch: Launch, grid: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        """Enqueue one launch in its mode; dependent launches begin early only within a graph.

        Raises TooManyResourcesError for a launch that needs too much, DeviceFaultError for any other error.
        """
        stream = self._cupy.cuda.get_current_stream().ptr if launch.mode == "dependent" else 0
        try:
            if stream:
                if status := launch_dependent(function.ptr, launch, grid, arguments, stream):
                    raise self._driver.CUDADriverError(status)
            elif launch.mode == "cooperative":
                function(grid, launch.block, arguments, launch.shared_bytes, enable_cooperative_groups=True)
            else:
                function(grid, launch.block, arguments, launch.shared_bytes)
        except ValueError as error:
            if launch.mode != "cooperative":
                raise
            # what CuPy says of more blocks than the device can hold
            raise TooManyResourcesError(f"{launch.entry}: {error}") from error
        except self._driver.CUDADriverError as error:
            if error.status in (_INVALID_VALUE, _OUT_OF_RESOURCES, _TOO_MANY_AT_ONCE):
                threads = "x".join(map(str, launch.block))
                raise TooManyResourcesError(f"{launch.entry} with {threads} threads: {error}") from error
            raise DeviceFaultError(str(error)) from error

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that launches what `run` enqueues as one CUDA graph. Raises DeviceFaultError."""
        cuda = self._cupy.cuda
        stream = cuda.Stream()
        with self._faults(), stream:  # the default stream cannot be captured
            graph = Graph(self._runtime, stream, run)

        def replay() -> None:
            with self._faults():
                graph.launch(cuda.get_current_stream())

        return replay

    def synchronize(self) -> None:
        """Wait for all enqueued work. Raises DeviceFaultError."""
        with self._faults():
            self._runtime.deviceSynchronize()

    @cached_property
    def _host_reads(self) -> HostReads:
        return HostReads(self._cupy, self.host_empty, self.synchronize)

    def gathered(self, array: Array, indices: Any) -> Any:
        """Return elements of an array (`Device.gathered`). Raises DeviceFaultError."""
        if not indices.size:
            return np.empty(indices.shape, array.dtype)
        with self._faults(), self.current():
            return self._host_reads.gather(_address(array), str(array.dtype), indices)

    def filled(self, parts: Sequence[Array], value: int) -> bool:
        """Return whether every byte has a value (`Device.filled`). Raises DeviceFaultError."""
        with self._faults(), self.current():
            ranges = [(_address(part), part.nbytes) for part in parts if part.nbytes]
            return not ranges or self._host_reads.compare(ranges, value)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Return the range in which this GPU is the current one."""
        with self._cupy.cuda.Device(self._index):
            yield

    def queue(self, *, first: bool = False) -> CudaQueue:
        """Return a new stream. first: of the highest priority."""
        return CudaQueue(self._cupy, self._index, first=first)

    def copy(self, target: Array, source: Array) -> None:
        """Enqueue a copy in the current stream, by a copy engine if a GPU is not the same."""
        stream = self._cupy.cuda.get_current_stream().ptr
        with self._faults():
            self._runtime.memcpyAsync(
                _address(target), _address(source), source.nbytes, self._runtime.memcpyDefault, stream
            )

    def reaches(self, other: CudaDevice) -> bool:
        """Enable peer access to another GPU; return whether there is such access."""
        if other._index == self._index:
            return True
        if not self._runtime.deviceCanAccessPeer(self._index, other._index):
            return False
        with self.current():
            try:
                self._runtime.deviceEnablePeerAccess(other._index)
            except self._runtime.CUDARuntimeError as error:
                if error.status != _PEER_ACCESS_ALREADY_ENABLED:
                    raise
        return True

    def recorded_in(self, queue: CudaQueue, run: Callable[[], None]) -> Callable[[], None]:
        """Return a function that launches what `run` enqueues in streams of any GPUs as one CUDA graph.

        Raises DeviceFaultError.
        """
        with self._faults(), self.current():
            graph = Graph(self._runtime, queue.stream, run)

        def replay() -> None:
            with self._faults(), self.current():
                graph.launch(queue.stream)

        return replay

    def time_s(self, run: Callable[[], None]) -> float:
        """Return the seconds between two events around what `run` enqueues. Raises DeviceFaultError."""
        start, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
        with self._faults():
            start.record()
            run()
            end.record()
            end.synchronize()
            return float(self._cupy.cuda.get_elapsed_time(start, end)) / 1e3

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """Return the seconds between events; one run is queued behind the running one. Raises DeviceFaultError."""
        marks = [self._cupy.cuda.Event() for _ in range(count + 1)]
        with self._faults():
            marks[0].record()
            for n in range(count):
                run()
                marks[n + 1].record()
                marks[n].synchronize()
                look()
            marks[count].synchronize()
            return [float(self._cupy.cuda.get_elapsed_time(*pair)) / 1e3 for pair in pairwise(marks)]

    def conditions(self) -> Conditions:
        """Return clocks, power and temperature from NVML."""
        return self._monitor.conditions()

    def energy_j(self) -> float | None:
        """Return the energy counter of NVML."""
        return self._monitor.energy_j

    @contextmanager
    def marked(self, name: str) -> Iterator[None]:
        """Return an NVTX range, which Nsight Systems and Nsight Compute show."""
        nvtx = getattr(self._cupy.cuda, "nvtx", None)  # a build of CuPy may come without
        if nvtx is None:
            yield
            return
        nvtx.RangePush(name)
        try:
            yield
        finally:
            nvtx.RangePop()

    @contextmanager
    def looked_at(self) -> Iterator[None]:
        """Return the range between cudaProfilerStart and cudaProfilerStop."""
        runtime = self._cupy.cuda.runtime
        runtime.profilerStart()
        try:
            yield
        finally:
            runtime.profilerStop()

    def datasheet_bytes_per_s(self) -> float | None:
        """Return the peak memory bandwidth from NVML."""
        return self._monitor.memory_bytes_per_s

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except (self._runtime.CUDARuntimeError, self._driver.CUDADriverError) as error:
            raise DeviceFaultError(str(error)) from error

    def _allow_shared(self, function: Any, size_bytes: int) -> None:
        if size_bytes > _STATIC_SHARED_BYTES:
            attribute = self._driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._driver.funcSetAttribute(function.ptr, attribute, size_bytes)


def _address(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def open_cuda(index: int) -> CudaDevice:
    """Open the GPU of an index, as CUDA counts them. Raises DeviceUnavailableError."""
    count = device_count()
    if index >= count:
        raise DeviceUnavailableError(
            f"GPU {index} does not exist: this machine has {count}, counted from 0; choose another --device."
        )
    found = cupy()
    try:
        found.cuda.Device(index).use()
        found.cuda.runtime.free(0)  # makes the context
        return CudaDevice(found, index)
    except found.cuda.runtime.CUDARuntimeError as error:
        raise DeviceUnavailableError(f"GPU {index} cannot be used: {error}; see nvidia-smi.") from error
