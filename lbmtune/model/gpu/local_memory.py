"""What a byte of local memory takes, as copies say whose threads keep words in it."""

from __future__ import annotations

from lbmtune.model.gpu.inputs import between
from lbmtune.model.machine.description import Machine


def local_byte_s(machine: Machine, access_bytes: int, kept_bytes: float, *, walking: bool) -> float:
    """Seconds of the device for one that is written, or read, where the threads of a multiprocessor keep so many.

    As long as a copy with that access width takes longer whose threads keep as much in all. Stores go through L1 to L2,
    so that there is no step where L1 is full. The machine is calibrated.
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
    return between(curve, kept_bytes)
