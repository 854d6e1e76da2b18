"""Time output every n steps, for kernels of every family: macroscopic fields, a file of them, and a residual.

Between two launches a pass of its own computes density and velocity of the state (`runtime.macroscopic_pass`).
Steps with and without output take turns. An output costs the same after fewer steps, so long intervals are cut short;
those of a residual, while which a GPU goes on, stay longer than the host takes for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from math import ceil
from pathlib import Path
from statistics import median

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device
from lbmtune.catalogue.boundaries.cut_links import Window, solid_in
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.measure.timing.host_output import FieldFile, residual, to_host
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.records.output import MACROSCOPICS, RESIDUAL, SAVE, Output, OutputCost, OutputRates
from lbmtune.records.study import CEILING_STREAMS
from lbmtune.runtime import Simulation
from lbmtune.runtime.macroscopic_pass import MacroscopicPass
from lbmtune.runtime.states import summed

ROUNDS = 5
_LONGEST_S = 0.1
"""Steps between two outputs take up to this, where fewer than those asked for do as well."""
_OVERLAP = 1.5
"""How much longer than a residual the steps are behind which it is hidden, if the interval is as long."""
_MOST_BYTES = 1 << 28
"""Most bytes by which the rates of copy, file and residual are measured."""
_RATE_RUNS = 3
_PASS_DOMAIN = (128, 64, 64)
_ROUNDINGS = 256
"""Roundings of the compute precision by which density and velocity may be off: they are sums of few small values."""


class Outputs:
    """The output of a simulation. kinds: by name; each is called between two launches."""

    def __init__(self, simulation: Simulation, device: Device, compiler: Compiler, folder: Path | None) -> None:
        """Make the pass. device: of the simulation, on which the fields are allocated; folder: of the file.

        Raises CompileError, OutOfMemoryError, MemoryError.
        """
        self._device, self._folder = device, folder
        self.fields = MacroscopicPass(simulation, device, compiler)
        self.residual_s = 0.0
        self._worker = ThreadPoolExecutor(1)
        self._pending: Future[float] | None = None
        self.kinds: dict[str, Callable[[], object]] = {
            MACROSCOPICS: self.fields,
            SAVE: self.save,
            RESIDUAL: self.compare,
        }

    def save(self) -> None:
        """Write the fields to the file. Raises InputError, for a full disk too."""
        fields = self.fields()
        if isinstance(fields, np.ndarray):
            self.file.write(fields)
            return
        to_host(fields.reshape(-1), self._host[0])
        self.file.write(self._host[0])

    def compare(self) -> None:
        """Have a thread of the host compute the residual, as soon as it is done with that of the time before."""
        if self._pending is not None:
            self._pending.result()
            self._host.reverse()
        to_host(self.fields().reshape(-1), self._host[0])
        now, before = (host.reshape(MACROSCOPIC_FIELDS, -1)[1:].reshape(-1) for host in self._host)
        self._pending = self._worker.submit(self._residual, now, before)

    @property
    def residual(self) -> float:
        """The last residual; waits for it."""
        assert self._pending is not None
        return self._pending.result()

    @cached_property
    def file(self) -> FieldFile:
        """The file."""
        return FieldFile(self._folder)

    @cached_property
    def _host(self) -> list[Array]:
        fields = self.fields.fields
        arrays = [self._device.host_empty(fields.size, str(fields.dtype)) for _ in range(2)]
        for array in arrays:
            array.fill(0)
        return arrays

    def _residual(self, now: Array, before: Array) -> float:
        begin = time.perf_counter()
        found = residual(now, before)
        self.residual_s = time.perf_counter() - begin
        return found

    def close(self) -> None:
        """Wait for the residual and remove the file."""
        self._worker.shutdown()
        if "file" in vars(self):
            self.file.close()


@contextmanager
def outputs(simulation: Simulation, device: Device, compiler: Compiler, folder: Path | None) -> Iterator[Outputs]:
    """Provide the output of a simulation; see `Outputs`."""
    found = Outputs(simulation, device, compiler, folder)
    try:
        yield found
    finally:
        found.close()


def measure_output(
    simulation: Simulation, wanted: Output, device: Device, compiler: Compiler, folder: Path | None
) -> tuple[OutputCost, ...]:
    """Return what each kind of output costs on the simulation's own domain.

    device: on which the fields are allocated, which has the simulation's state. Raises WrongResultError, InputError,
    CompileError, OutOfMemoryError, MemoryError.
    """
    excite(simulation)
    with outputs(simulation, device, compiler, folder) as output:
        steps = _whole_launches(simulation, 2)
        step_s = min(_timed_s(simulation, lambda: simulation.step(steps)) for _ in range(ROUNDS)) / steps
        every = {kind: _whole_launches(simulation, n) for kind, n in wanted.intervals.items()}
        for kind in every:  # whatever is made at first use
            output.kinds[kind]()
        check_fields(simulation, output.fields())
        if RESIDUAL in every:
            _ = output.residual
        apart = {
            kind: _apart(simulation, n, step_s, output.residual_s * (kind == RESIDUAL)) for kind, n in every.items()
        }
        plain = _whole_launches(simulation, ceil(_LONGEST_S / step_s))
        rounds = [_round(simulation, output, apart, plain) for _ in range(ROUNDS)]
        check_state(simulation)
        check_fields(simulation, output.fields())
    steps_s = median(one[""] for one in rounds)
    found = []
    for kind, n in every.items():
        events = [one[kind] - apart[kind] * one[""] for one in rounds]
        found.append(
            OutputCost(
                kind=kind,
                every=n,
                apart=apart[kind],
                event_s=median(events),
                low_s=min(events),
                high_s=max(events),
                step_s=steps_s,
            )
        )
    return tuple(found)


def _round(simulation: Simulation, output: Outputs, apart: dict[str, int], plain: int) -> dict[str, float]:
    """Return the seconds of a step without output (''), and of the steps from one output to the next by kind."""
    taken = {"": _timed_s(simulation, lambda: simulation.step(plain)) / plain}
    for kind, steps in apart.items():

        def interval(act: Callable[[], object] = output.kinds[kind], steps: int = steps) -> None:
            simulation.step(steps)
            act()

        output.kinds[kind]()  # a residual is under way when the steps begin
        taken[kind] = _timed_s(simulation, interval)
    return taken


def _timed_s(simulation: Simulation, run: Callable[[], object]) -> float:
    simulation.device.synchronize()
    begin = time.perf_counter()
    run()
    simulation.device.synchronize()
    return time.perf_counter() - begin


def _whole_launches(simulation: Simulation, steps: int) -> int:
    """Return the next number of steps after which a launch ends."""
    each = 1 if simulation.program.any_steps else simulation.program.steps
    return ceil(steps / each) * each


def _apart(simulation: Simulation, every: int, step_s: float, residual_s: float) -> int:
    """Return the steps between two outputs that are measured: those asked for, or fewer if they take long."""
    return min(every, _whole_launches(simulation, ceil(max(_LONGEST_S, _OVERLAP * residual_s) / step_s)))


def check_fields(simulation: Simulation, fields: Array) -> None:
    """Raise WrongResultError if density or velocity of a plane of cells is not that of its populations.

    Cells at faces where populations are completed are left out.
    """
    case, xp = simulation.case, simulation.xp
    margin = bool(conditions(case))
    x, y = (range(margin, n - margin) if n > 2 else range(n) for n in case.domain[:2])
    window: Window = (x, y, range(case.domain[2] // 2, case.domain[2] // 2 + 1))
    rho, momentum = summed((f for block in simulation.population_blocks(window) for f in block), case.stencil)
    velocity = [(m + 0.5 * force) / rho for m, force in zip(momentum, case.force, strict=True)]
    here = fields.reshape(MACROSCOPIC_FIELDS, *case.domain[::-1])
    found = here[(slice(None), *(slice(part.start, part.stop) for part in reversed(window)))]
    bound = _ROUNDINGS * simulation.program.config.computed.epsilon
    fluid = ~solid_in(case, window, xp) if case.geometry else True
    for name, is_, ought in zip(("density", "u_x", "u_y", "u_z"), found, (rho, *velocity), strict=True):
        error = float(xp.where(fluid, xp.abs(is_ - ought), 0.0).max())
        if not error <= bound:
            raise WrongResultError(f"{name} of the output is off by {error:.3g}; at most {bound:.3g} is rounding")


def measure_rates(device: Device, fields_bytes: int, folder: Path | None) -> OutputRates:
    """Return the rates of copy, file and residual for fields of so many bytes. Raises InputError."""
    elements = max(MACROSCOPIC_FIELDS, min(fields_bytes, _MOST_BYTES) // 4)
    source, hosts = device.empty(elements, "float32"), [device.host_empty(elements, "float32") for _ in range(2)]
    for n, array in enumerate((source, *hosts)):
        array.fill(n)
    file = FieldFile(folder)
    file.write(hosts[0])

    def rate(run: Callable[[], object]) -> float:
        return 4 * elements / min(_seconds(run) for _ in range(_RATE_RUNS))

    device.synchronize()
    found = OutputRates(
        copy_bytes_per_s=None if isinstance(source, np.ndarray) else rate(lambda: to_host(source, hosts[0])),
        file_bytes_per_s=rate(lambda: file.write(hosts[0])),
        residual_bytes_per_s=rate(lambda: residual(*hosts)),
        pass_bytes_per_s=_pass_rate(device) if device.environment.backend == "cpu" else None,
        folder=str(file.folder),
    )
    file.close()
    return found


def _pass_rate(device: Device) -> float:
    """Return the bytes per second of the pass of a CPU over a box in SoA, single precision, with all cores."""
    from lbmtune.backend.cpu.macroscopic_pass import of_box  # here: Numba takes its time to come

    nx, ny, nz = _PASS_DOMAIN
    sites, values = nx * ny * nz, CEILING_STREAMS
    state, fields = (device.empty(n * sites, "float32") for n in (values, MACROSCOPIC_FIELDS))
    state.fill(1e-3)
    axes = np.concatenate([np.arange(nx), nx * np.arange(ny), nx * ny * np.arange(nz)])
    along = axes + np.r_[np.ones(nx), np.zeros(ny + nz)].astype(np.int64) * sites * np.arange(values)[:, None]
    factors = np.ones((MACROSCOPIC_FIELDS, values), np.float32)
    factors[1:, ::2] = 0  # as many directions as not have no component along an axis
    tables = (np.array([along, along]), np.ones(values, bool), np.empty(0, np.uint32), factors)
    first = np.array([1, 0, 0, 0], np.float32)
    arguments = (state, np.empty(0, np.float32), *tables, first, fields.reshape(MACROSCOPIC_FIELDS, -1), _PASS_DOMAIN)

    def run() -> None:
        of_box(device.limits.cores, "none", *arguments)

    run()
    moved: float = sites * (state.itemsize * values + 2 * MACROSCOPIC_FIELDS * fields.itemsize)
    return moved / min(_seconds(run) for _ in range(_RATE_RUNS))


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
