"""What a simulation does besides stepping, so that its price can be measured."""

from __future__ import annotations

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.case import Case
from lbmtune.codegen.program import Program
from lbmtune.records.claims import Duty
from lbmtune.runtime import Simulation


def equipped(program: Program, duty: Duty | None) -> Program:
    """The program with the entries that a duty needs."""
    assert duty is None
    return program


def simulated(program: Program, binary: Binary, device: Device, case: Case, duty: Duty | None) -> Simulation:
    """A simulation with its duty. Raises OutOfMemoryError, TooManyResourcesError."""
    assert duty is None
    return Simulation(program, binary, device, case)
