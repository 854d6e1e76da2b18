"""Caches of a calibrated GPU: data that L2 retains, and the time of local memory."""

from __future__ import annotations

from lbmtune.model.machine.curves import interpolated
from lbmtune.model.machine.description import Machine


def retained_in_l2(machine: Machine, between_bytes: float) -> float:
    """Return the share of data that L2 still holds after a number of bytes have passed through it.

    Source: `Calibration.again_bytes_per_s`. Without it: all, as long as these bytes fit.
    """
    measured = machine.calibration.again_bytes_per_s if machine.calibration else {}
    if not measured:
        return float(between_bytes <= machine.caches_bytes.get("L2", 0))
    curve = sorted((int(between), 1 / rate) for between, rate in measured.items())
    (_, hit_s), (_, miss_s) = curve[0], curve[-1]
    return min(1.0, max(0.0, (miss_s - interpolated(curve, between_bytes)) / (miss_s - hit_s)))


def local_byte_s(machine: Machine, access_bytes: int, kept_bytes: float, *, walking: bool) -> float:
    """Return the seconds of the device for a byte of local memory that is stored or loaded.

    kept_bytes: local memory of all threads of a multiprocessor. Source: how much longer a copy with that access width
    takes whose threads use as much local memory (`Calibration.spilled_bytes_per_s`). Stores go through L1 to L2, so
    there is no step at the size of L1. The machine has to be calibrated.
    """
    assert machine.calibration is not None
    taken = {}
    for name, rate in machine.calibration.spilled_bytes_per_s.items():
        words = name.split()
        if words[0] == str(access_bytes) and (words[-1] == "walking") == walking:
            taken[int(words[2]), int(words[4])] = 2 * machine.streams * access_bytes / rate
    none = next(seconds for (_, local), seconds in taken.items() if not local)
    curve = [
        (threads * local, max(0.0, seconds - none) / (2 * local))
        for (threads, local), seconds in sorted(taken.items())
        if local
    ]
    return interpolated(curve, kept_bytes)
