"""The processor as a device: arrays, launches, timing, energy, environment."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
import psutil

from lbmtune import quotas
from lbmtune.backend.cpu.compilation.c_code import SharedObject, load_c
from lbmtune.backend.cpu.compilation.modules import import_text
from lbmtune.backend.cpu.placement.numa import nodes
from lbmtune.backend.cpu.placement.pages import HUGE_BYTES, huge_pages, mapped
from lbmtune.backend.cpu.placement.threads import ALLOWED, bind
from lbmtune.backend.immediate import HostMemory, ImmediateQueue
from lbmtune.backend.protocol import Array, Binary, OutOfMemoryError, Placing, TooManyResourcesError
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.program import Launch, Program
from lbmtune.cores import physical_cores
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Conditions, Environment, Resources

_CORES = min(len(ALLOWED), quotas.cores() or len(ALLOWED))
"""Processors that this process may use at once."""
_RUN_BYTES = 512 << 20
"""Memory of the processes of a run beside the arrays of a kernel, at most half of a limit, against which it counts."""
_POWER_ZONES = Path("/sys/class/powercap")
_energy: dict[Path, tuple[int, int]] = {}
"""Last value of each energy counter, and the microjoules of its overflows before."""


@dataclass(frozen=True)
class CpuExecutable:
    """The entries of a generated module. threads: of the parallel loop; pinning: how they are bound."""

    entries: dict[str, Callable[..., None]]
    resources: Resources
    threads: int
    pinning: str = "none"

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Array | int | float]) -> None:
        """Run a launch to its end; the kernel has no grid, and halves are passed as 16-bit integers."""
        bind(self.threads, self.pinning)
        numba.set_num_threads(self.threads)
        self.entries[launch.entry](*map(_passed, arguments))

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return `run` itself: launches are not recorded."""
        return run


def _passed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(np.uint16) if value.dtype == np.float16 else value
    return int(value) if isinstance(value, np.integer) else value


_LAYERS = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}
"""Modules of Numba's threading layers by what NUMBA_THREADING_LAYER says; other words leave the choice to Numba."""


def _check_layer(layer: str) -> None:
    """Raise DeviceUnavailableError if the threading layer that the user chose cannot be loaded."""
    if layer not in _LAYERS:
        return
    try:
        import_module(f"numba.np.ufunc.{_LAYERS[layer]}")
    except ImportError as error:
        raise DeviceUnavailableError(
            f"NUMBA_THREADING_LAYER={layer} cannot be used here ({error}); unset it."
        ) from error


class CpuDevice(HostMemory):
    """The cores that this process may use. shared: other programs of the host may disturb them."""

    shared = True

    def __init__(self) -> None:
        """Raise DeviceUnavailableError if Numba does not compile."""
        if numba.config.DISABLE_JIT:
            raise DeviceUnavailableError("the CPU needs Numba's compiler, which NUMBA_DISABLE_JIT turns off; unset it.")
        _check_layer(str(numba.config.THREADING_LAYER))
        self._share: float | None = None
        self._threads = 1

    @property
    def xp(self) -> ModuleType:
        """Return the module numpy."""
        return np

    @cached_property
    def limits(self) -> Limits:
        """Return the cores, widest vectors and free memory."""
        memory = quotas.memory()
        reserved = min(_RUN_BYTES, memory.available // 2) if memory.limited else 0
        return Limits(
            cores=min(_CORES, numba.config.NUMBA_NUM_THREADS),
            physical_cores=physical_cores(ALLOWED),
            numa_nodes=tuple(len(one & ALLOWED) for one in nodes()),
            vector_bits=vector_bits(),
            memory_bytes=memory.available - reserved,
            memory_limited=memory.limited,
            huge_pages=huge_pages(),
        )

    @cached_property
    def environment(self) -> Environment:
        """Return the machine and the versions of the compiler of its kernels."""
        model = cpu_model()
        return Environment(
            backend="cpu",
            device=model,
            device_id=f"{model}, {_CORES} cores",
            architecture=llvm.get_host_cpu_name(),
            driver=platform.release(),
            runtime=f"numba {numba.__version__}",
            compiler="LLVM " + ".".join(map(str, llvm.llvm_version_info)),
            memory_bytes=quotas.memory().total,
            cores=_CORES,
            vector_bits=vector_bits(),
            host=platform.node(),
            python=platform.python_version(),
            packages={name: importlib.metadata.version(name) for name in ("numba", "llvmlite", "numpy")},
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    @property
    def core_clock_hz(self) -> float | None:
        """Return the highest clock that the system reports of the cores, or else their present one."""
        clock = psutil.cpu_freq()
        return 1e6 * (clock.max or clock.current) or None if clock else None

    def empty(self, elements: int, dtype: str, placing: Placing | None = None) -> Array:
        """Return an array that starts at a huge page if it is larger than one, else at a cache line.

        So equal configurations use equal cache sets. placing: the array has a mapping of its own, touched accordingly.
        Raises OutOfMemoryError.
        """
        size = elements * np.dtype(dtype).itemsize
        # the system overcommits memory: a page without backing would end the process later
        if size > (memory := quotas.memory()).available:
            limited = " within the memory limit of this process" if memory.limited else ""
            raise OutOfMemoryError(f"{size} bytes asked for, {memory.available} available{limited}")
        if placing:
            return mapped(size, placing).view(dtype)
        alignment = HUGE_BYTES if size > HUGE_BYTES else 64
        raw = np.empty(size + alignment, np.uint8)
        start = -raw.ctypes.data % alignment
        return raw[start : start + size].view(dtype)

    def host_empty(self, elements: int, dtype: str) -> Array:
        """Return an array: the host is the device. Raises OutOfMemoryError."""
        return self.empty(elements, dtype)

    def load(self, program: Program, binary: Binary) -> CpuExecutable | SharedObject:
        """Import the module, from Numba's cache if it is there, or load C. Raises TooManyResourcesError."""
        config: Any = program.config
        threads = config.threads
        if program.in_c:
            self._threads = threads
            return load_c(program, binary, threads)
        if threads > numba.config.NUMBA_NUM_THREADS:
            raise TooManyResourcesError(f"{threads} threads; Numba was started with {numba.config.NUMBA_NUM_THREADS}")
        module = import_text(Path(binary.image.decode()), program.source)
        self._threads = threads
        entries = {name: getattr(module, name) for name in program.entries}
        return CpuExecutable(entries, binary.resources, threads, config.pinning)

    def synchronize(self) -> None:
        """Return at once: launches end before they return."""

    def current(self) -> AbstractContextManager[None]:
        """Return a range without effect: there is one processor."""
        return nullcontext()

    def queue(self, *, first: bool = False) -> ImmediateQueue:
        """Return a queue, which works at once."""
        return ImmediateQueue()

    def copy(self, target: Array, source: Array) -> None:
        """Copy an array to another one."""
        target[...] = source

    def reaches(self, other: CpuDevice) -> bool:
        """Return that it does: there is one memory."""
        return True

    def recorded_in(self, queue: ImmediateQueue, run: Callable[[], None]) -> Callable[[], None]:
        """Return `run` itself: work is not recorded."""
        return run

    def time_s(self, run: Callable[[], None]) -> float:
        """Return the wall-clock seconds of `run`."""
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        run()
        wall_s = time.perf_counter() - start_s
        self._share = (time.process_time() - start_cpu_s) / (wall_s * self._threads)
        return wall_s

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        """Return the wall-clock seconds of each run."""
        seconds = []
        for _ in range(count):
            seconds.append(self.time_s(run))
            look()
        return seconds

    def conditions(self) -> Conditions:
        """Return the CPU share of what was timed last."""
        return Conditions(cpu_share=self._share)

    def datasheet_bytes_per_s(self) -> float | None:
        """Return None: no interface of the system reports it."""
        return None

    def marked(self, _name: str, /) -> AbstractContextManager[None]:
        """Return a range without effect: no profiler is supported."""
        return nullcontext()

    def looked_at(self) -> AbstractContextManager[None]:
        """Return a range without effect: no profiler is supported."""
        return nullcontext()

    def energy_j(self) -> float | None:
        """Return the energy of all packages, if the system lets this process read it."""
        return packages_j()


def vector_bits() -> int:
    """Return the bits of the widest SIMD registers that kernels use; 0: none."""
    features = llvm.get_host_cpu_features()
    if all(features.get(name) for name in ("avx512f", "avx512bw", "avx512vl")):
        return 512
    return 256 if all(features.get(name) for name in ("avx2", "f16c", "fma")) else 0


def cpu_model() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def packages_j() -> float | None:
    """Return the joules of all packages since a fixed moment; None without a counter that this process may read.

    Source: Linux, Documentation/power/powercap: zones intel-rapl:N, also of AMD processors.
    """
    zones = [_continued(zone) for zone in sorted(_POWER_ZONES.glob("intel-rapl:*")) if zone.name.count(":") == 1]
    readable = [value for value in zones if value is not None]
    return sum(readable) * 1e-6 if readable and len(readable) == len(zones) else None


def _continued(zone: Path) -> int | None:
    """Return the microjoules of a zone across overflows, if it is read at least once between two of them."""
    try:
        now = int((zone / "energy_uj").read_text())
        overflow = int((zone / "max_energy_range_uj").read_text()) + 1
    except (OSError, ValueError):
        return None
    last, before = _energy.get(zone, (now, 0))
    before += overflow if now < last else 0
    _energy[zone] = (now, before)
    return before + now
