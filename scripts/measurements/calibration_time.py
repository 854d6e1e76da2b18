"""Time `lbmtune devices --calibrate` part by part, with empty caches and nothing on file.

    python -m scripts.measurements.calibration_time 0 cpu

Prints the seconds of each part of each device, their sum, and the speeds of kernels that were measured twice.
"""

import os
import sys
import tempfile
import time

from lbmtune.measure.calibration.machines import CONFIG_VARIABLE, describe
from lbmtune.records.store import CACHE_VARIABLE

LIMITS_S = {"cpu": 90.0}
"""Seconds that a calibration may take; of a GPU 60."""


def main() -> int:
    """Calibrate the devices of the command line; the exit code tells if one took too long."""
    late = False
    for device in sys.argv[1:] or ["cpu"]:
        with tempfile.TemporaryDirectory() as folder:
            os.environ[CONFIG_VARIABLE] = os.environ[CACHE_VARIABLE] = folder
            late |= timed(device) > LIMITS_S.get(device, 60.0)
    return int(late)


def timed(device: str) -> float:
    """Calibrate a device, print the seconds of each part, and return all of them."""
    begin = time.perf_counter()
    heard = [("start", begin)]

    def told(part: str) -> None:
        name, since = heard[-1]
        heard.append((part, time.perf_counter()))
        print(f"{heard[-1][1] - since:7.2f} s  {name}", flush=True)

    machine = describe(device, refresh=True, extent="full", progress=told)
    told("end")
    seconds = heard[-1][1] - begin
    print(f"{seconds:7.2f} s  all of {machine.environment.device_id}; load {os.getloadavg()[0]:.1f}")
    print("repeats:", ", ".join(f"{one:+.4f}" for one in machine.repeats) or "not measured", flush=True)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
