"""Verification of a program at the size of its case."""

from lbmtune.backend.protocol import Binary, Device
from lbmtune.codegen.program import Program
from lbmtune.measure.verification.verify import verify_simulation
from lbmtune.records import Verification
from lbmtune.runtime import Simulation


def verify_full_size(program: Program, binary: Binary, device: Device) -> Verification:
    """Verifies every cell of the case's own domain."""
    return verify_simulation(Simulation(program, binary, device))
