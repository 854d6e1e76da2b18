"""The real CPU with short measurements. Workers import this file without the tests."""

from __future__ import annotations

from lbmtune.backend.cpu import open_cpu
from lbmtune.backend.protocol import Device
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.calibration import machines, microbench, repeats


def small_cpu(_: str) -> Device:
    """Open the CPU with small arrays and short samples."""
    microbench._CPU_STREAM_BYTES = 1 << 19
    microbench._TIMES_CACHE = 0
    microbench._SAMPLES = 3
    microbench._WARMUP_S = 1e-3
    microbench._SAMPLE_S = 1e-3
    machines._OUTPUT_BYTES = 1 << 20
    repeats._DOMAINS = {"cpu": ((32, 16, 16),)}
    return open_cpu()


def no_device(_: str) -> Device:
    raise DeviceUnavailableError("there is no such device; plug one in.")
