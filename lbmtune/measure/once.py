"""A few time steps and nothing else: what a profiler of the hardware is started over.

    python -m lbmtune.measure.once REQUEST

REQUEST is the file that `write_request` leaves. A sound state is stepped through whole periods; nothing is timed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from lbmtune.backend.protocol import Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import KernelConfig, from_flat
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.stages import calm
from lbmtune.measure.timing import excite
from lbmtune.runtime import Simulation

WARM_CYCLES = 4
"""Cycles of parity and buffer exchange before the one that is looked at."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What runs where. sources: a folder for the text of the kernel with line information; empty: without."""

    case: Case
    config: dict[str, int | str]
    device: str
    sources: str = ""


def write_request(path: Path, case: Case, config: KernelConfig, device: str, sources: str = "") -> None:
    """Leaves what `main` is to do."""
    path.write_bytes(msgspec.json.encode(Request(case=case, config=config.flat(), device=device, sources=sources)))


def launches(program: Program) -> tuple[int, int]:
    """Kernels launched before the cycle that is looked at, and in it."""
    exchanges = program.config.propagation.exchanges(program.case.stencil)
    parities = len(program.period)
    steps = max(parities, 2 if exchanges else 1)
    each = sum(len(program.period[t % parities]) for t in range(steps))
    return WARM_CYCLES * each, each


def run(request: Request, device: Device) -> None:
    """The warm cycles, and the one that is looked at."""
    program = render(request.case, from_flat(request.config))
    binary = compiler_for(device.environment)(program)
    simulation = Simulation(program, binary, device, calm(request.case))
    excite(simulation)
    simulation.step((WARM_CYCLES + 1) * simulation.parity_steps)
    device.synchronize()


def main(path: str) -> None:
    """Runs the request of a file."""
    request = msgspec.json.decode(Path(path).read_bytes(), type=Request)
    run(request, open_device(request.device))


if __name__ == "__main__":
    main(sys.argv[1])
