"""The roofline: bytes of an update over a measured bandwidth. Source: Williams et al. 2009."""

from typing import NamedTuple

from lbmtune.model.machine.curves import by_number, closest
from lbmtune.model.machine.description import Machine
from lbmtune.records import Term
from lbmtune.records.terms import MEMORY
from lbmtune.units import format_rate

CALIBRATED = "calibrated by micro-benchmarks"
DATASHEET = "data sheet, not measured"


class Ceiling(NamedTuple):
    """A bandwidth and its source."""

    bytes_per_s: float
    source: str


def memory_term(moved: float, bytes_per_s: float, source: str) -> Term:
    """Return the time of moving the bytes of an update at a bandwidth."""
    return Term(MEMORY, moved / bytes_per_s, f"{moved:.4g} bytes per update at {format_rate(bytes_per_s)}", source)


def copy_ceiling(machine: Machine, name: str) -> Ceiling:
    """Return the measured copy of an access width, or of the nearest width that was measured."""
    measured = machine.stream_bytes_per_s
    if name not in measured:
        name = str(closest(by_number(tuple(measured), ""), int(name.split()[0])))
    source = f"{machine.streams}-stream copy, {name} bytes at once" if machine.measured else DATASHEET
    return Ceiling(measured[name], source)
