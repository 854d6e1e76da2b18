"""The import of CuPy, which happens when a device is opened, and the reasons why it cannot be used."""

from __future__ import annotations

from typing import Any

from lbmtune.backend.protocol import OR_CPU
from lbmtune.errors import DeviceUnavailableError

_NO_DEVICE = 100


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
