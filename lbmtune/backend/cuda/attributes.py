"""The import of CuPy, attributes and limits of a GPU, and its environment with driver and compiler."""

import os
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.cuda.nvml import Monitor
from lbmtune.backend.protocol import OR_CPU
from lbmtune.catalogue.families.rules import Limits, cuda_limits
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Environment

_UNNAMED = {
    "ComputeCapabilityMajor": 75,
    "ComputeCapabilityMinor": 76,
    "MaxSharedMemoryPerMultiprocessor": 81,
    "CooperativeLaunch": 95,
    "MaxSharedMemoryPerBlockOptin": 97,
}
"""Attributes of cudaDeviceAttr that CuPy does not name."""
_NO_DEVICE = 100
_PACKAGES = ("cupy", "cupy-cuda12x", "cupy-cuda13x", "numpy", "nvidia-ml-py", "nvidia-cuda-nvrtc")


def device_count() -> int:
    """Return the number of GPUs. Raises DeviceUnavailableError: no CuPy, no driver, a driver too old, no GPU."""
    runtime = cupy().cuda.runtime
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        raise DeviceUnavailableError(_sentence(runtime, error)) from error


def cupy() -> Any:
    """Import CuPy. Raises DeviceUnavailableError with what to install."""
    try:
        import cupy as found
    except ModuleNotFoundError as error:
        raise DeviceUnavailableError(
            f"a GPU needs CuPy, but Python has no module {error.name!r}; install lbmtune[cuda13] or [cuda12]{OR_CPU}."
        ) from error
    except ImportError as error:
        first_line = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DeviceUnavailableError(
            f"CuPy is installed but cannot be loaded ({first_line}); reinstall it{OR_CPU}."
        ) from error
    return found


def _sentence(runtime: Any, error: Any) -> str:
    """Return why there are no devices; the version of a missing driver is 0."""
    driver, needed = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    if error.status == _NO_DEVICE:
        return f"the NVIDIA driver sees no GPU here; check nvidia-smi and CUDA_VISIBLE_DEVICES{OR_CPU}."
    if driver == 0:
        return f"CuPy is installed, but there is no NVIDIA driver here; install one{OR_CPU}."
    if driver < needed:
        return (
            f"the NVIDIA driver supports CUDA {version_text(driver)}, CuPy was built for {version_text(needed)}; "
            f"update the driver{OR_CPU}."
        )
    return f"CUDA does not start: {error}; check nvidia-smi{OR_CPU}."


def version_text(number: int) -> str:
    """Return a version such as 13020 as '13.2'."""
    return f"{number // 1000}.{number % 1000 // 10}"


@dataclass(frozen=True)
class Attributes:
    """Attributes of the GPU of an index, by their names in cudaDeviceAttr. runtime: of CuPy."""

    runtime: Any
    index: int

    def __getitem__(self, name: str) -> int:
        number = _UNNAMED.get(name) or getattr(self.runtime, f"cudaDevAttr{name}")
        return int(self.runtime.deviceGetAttribute(number, self.index))

    @property
    def architecture(self) -> str:
        """Return the real architecture, such as 'sm_90'."""
        return f"sm_{self['ComputeCapabilityMajor']}{self['ComputeCapabilityMinor']}"


def limits(get: Attributes, memory_bytes: int) -> Limits:
    """Return the limits of a GPU with some free memory."""
    return replace(
        cuda_limits(get.architecture, get["MultiProcessorCount"], memory_bytes),
        threads_per_block=get["MaxThreadsPerBlock"],
        block=(get["MaxBlockDimX"], get["MaxBlockDimY"], get["MaxBlockDimZ"]),
        grid=(get["MaxGridDimX"], get["MaxGridDimY"], get["MaxGridDimZ"]),
        threads_per_multiprocessor=get["MaxThreadsPerMultiProcessor"],
        cores=os.cpu_count() or 1,
        shared_bytes_per_block=get["MaxSharedMemoryPerBlockOptin"],
        shared_bytes_per_multiprocessor=get["MaxSharedMemoryPerMultiprocessor"],
        cooperative=bool(get["CooperativeLaunch"]),
    )


def environment(get: Attributes, monitor: Monitor) -> Environment:
    """Return the GPU with its driver and the compiler for it."""
    runtime = get.runtime
    name = runtime.getDeviceProperties(get.index)["name"].decode()
    return Environment(
        backend="cuda",
        device=name,
        device_id=monitor.uuid or f"{name} at {runtime.deviceGetPCIBusId(get.index)}",
        architecture=get.architecture,
        driver=monitor.driver or f"CUDA {version_text(runtime.driverGetVersion())}",
        runtime=f"CUDA {version_text(runtime.runtimeGetVersion())}",
        compiler="NVRTC " + ".".join(map(str, nvrtc.version())),
        memory_bytes=int(runtime.memGetInfo()[1]),
        power_limit_w=monitor.power_limit_w,
        max_sm_clock_hz=monitor.max_sm_clock_hz,
        ecc=bool(get["EccEnabled"]),
        cores=os.cpu_count() or 1,
        host=platform.node(),
        python=platform.python_version(),
        packages=_versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _versions() -> dict[str, str]:
    installed = {str(found.metadata["Name"]): found.version for found in metadata.distributions()}
    return {name: installed[name] for name in sorted(installed) if name in _PACKAGES}
