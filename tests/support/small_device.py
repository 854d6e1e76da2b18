"""The real CPU, measured in a moment. Workers import this file, and not what tests are made of."""

from __future__ import annotations

from lbmtune.backend.cpu import open_cpu
from lbmtune.backend.protocol import Device
from lbmtune.errors import DeviceUnavailableError
from lbmtune.measure.calibration import microbench


def small_cpu(_: str) -> Device:
    """With arrays that do not take long."""
    microbench._CPU_STREAM_BYTES = 1 << 16
    microbench._TIMES_CACHE = 0
    microbench._SAMPLES = 3
    microbench._WARMUP_S = 1e-3
    microbench._SAMPLE_S = 1e-3
    return open_cpu()


def no_device(_: str) -> Device:
    raise DeviceUnavailableError("there is no such device; plug one in.")
