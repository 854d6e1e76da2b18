"""Go through verification and the preparation of a timed run without launching a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lbmtune.backend.protocol import Binary, Device, Executable, OutOfMemoryError
from lbmtune.codegen.program import Launch, Program
from lbmtune.measure.timing.pooled_device import PooledDevice
from lbmtune.measure.timing.state import check_state, excite
from lbmtune.measure.verification.verify import verify
from lbmtune.measure.workers.side_tasks import pooled_simulations
from lbmtune.records import Resources

_NO_BINARY = Binary(b"", "", Resources())


def dry_run(program: Program, device: Device) -> None:
    """Trigger everything that is done once: CuPy's own kernels are compiled, geometries and references are made.

    That takes seconds, which belong to no trial. A lack of memory is ignored: the trials will report it.
    """
    idle = _IdleDevice(device)
    with suppress(OutOfMemoryError, MemoryError):
        verify(program, _NO_BINARY, idle, 1)
        simulation = pooled_simulations(idle, [(program, _NO_BINARY, None)])[0]
        excite(simulation)
        check_state(simulation)


class _IdleDevice(PooledDevice):
    """A device whose programs do nothing."""

    def load(self, program: Program, binary: Binary) -> Executable:  # noqa: ARG002
        return _IdleExecutable(binary.resources)


@dataclass(frozen=True)
class _IdleExecutable:
    resources: Resources

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        """Do nothing."""

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return the run itself, which does nothing."""
        return run
