"""Attributes and limits of a GPU, and its environment with driver and compiler."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.cuda.library import version_text
from lbmtune.backend.cuda.nvml import Monitor
from lbmtune.catalogue.families.rules import Limits, cuda_limits
from lbmtune.records import Environment

_UNNAMED = {
    "ComputeCapabilityMajor": 75,
    "ComputeCapabilityMinor": 76,
    "MaxSharedMemoryPerMultiprocessor": 81,
    "CooperativeLaunch": 95,
    "MaxSharedMemoryPerBlockOptin": 97,
}
"""Attributes of cudaDeviceAttr that CuPy does not name."""
_PACKAGES = ("cupy", "cupy-cuda12x", "cupy-cuda13x", "numpy", "nvidia-ml-py", "nvidia-cuda-nvrtc")


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
        """The real architecture, such as 'sm_90'."""
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
