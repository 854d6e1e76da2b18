"""Arrays of structures: how much longer copies of them take whose threads keep words of local memory.

Each sector holds values of several directions, which cells of several planes access. In place it is loaded, and stored
in pieces by threads of these planes, and the L2 cache puts them together as long as it has it. Words that are kept from
the loads to the stores delay these, and take room in that cache; sectors that it has lost meanwhile are stored piece by
piece, as if to another array. Copies that do so are measured (`Calibration.structures_bytes_per_s`).
"""

from __future__ import annotations

from lbmtune.model.local import local_byte_s
from lbmtune.model.machine import Machine
from lbmtune.model.subject import between


def longer_s(machine: Machine, element_bytes: int, elements: int, side: str, kept_bytes: float) -> float:
    """Seconds per byte that is moved, where the threads of a multiprocessor keep so many bytes of local memory.

    Longer than where they keep none, and than writing and reading these takes anywhere. 0 where nobody has measured
    such structures. side: as of displaced copies. The machine is calibrated.
    """
    assert machine.calibration is not None
    asked, curve = (str(element_bytes), str(elements), "stay" if side == "none" else side), []
    for name, rate in machine.calibration.structures_bytes_per_s.items():
        width, _, cells, _, threads, _, local, *where = name.split()
        if (width, cells, " ".join(where)) == asked:
            kept, of_thread = int(threads) * int(local), int(local)
            words_s = of_thread * local_byte_s(machine, element_bytes, kept, walking=True)
            curve.append((kept, 1 / rate - words_s / (elements * element_bytes)))
    if not curve:
        return 0.0
    (_, none_s), *others = sorted(curve)
    return between([(kept, max(0.0, seconds - none_s)) for kept, seconds in others], kept_bytes)
