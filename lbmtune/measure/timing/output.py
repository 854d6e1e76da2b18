"""Time output every n steps, for kernels of every family: macroscopic fields, a file of them, and a residual.

Between two launches a pass of its own computes density and velocity of the state (`runtime.macroscopic_pass`).
As many steps with and without output take turns. An output costs the same after fewer steps, so long intervals are cut
short; those of a residual, while which a GPU goes on, stay longer than the host takes for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Compiler, Device
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.boundaries.cut_links import Window, solid_in
from lbmtune.catalogue.config import parse_config
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS, buffer_elements
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions
from lbmtune.catalogue.problem.flows import box
from lbmtune.measure.timing.host_output import FieldFile, residual, residual_of_threads, to_host
from lbmtune.measure.timing.state import WrongResultError, check_state, excite
from lbmtune.model.output import CELLS, GROUPS, LISTED, pass_bytes
from lbmtune.records.output import (
    ENOUGH_S,
    FEWEST,
    MACROSCOPICS,
    MOST,
    RESIDUAL,
    SAVE,
    Output,
    OutputCost,
    OutputRates,
    steps_apart,
)
from lbmtune.runtime import Simulation
from lbmtune.runtime.macroscopic_pass import FieldsKernel, MacroscopicPass
from lbmtune.runtime.macroscopic_places import places_of
from lbmtune.runtime.states import summed

_OVERLAP = 1.5
"""How much longer than a residual the steps are behind which it is hidden, if the interval is as long."""
_MOST_BYTES = 1 << 28
"""Most bytes by which the rates of copy, file and residual are measured."""
_RATE_RUNS = 7
_PASS_DOMAIN, _SCATTERED_DOMAIN = (128, 128, 64), (64, 64, 64)
"""Domains of the pass: one larger than caches, and one of single values, which do not take memory to its limit."""
_ROWS = "scheme=pull,layout=soa"
_SCATTERED = {
    GROUPS: "scheme=pull,layout=aosoa",
    CELLS: "scheme=pull,layout=aos,vector_bits=0",
    LISTED: "family=sparse,scheme=pull,layout=soa",
}
"""A kernel of each way to read single values."""
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
        self._shares_host = BACKENDS[simulation.program.target].shares_host
        self._config: Any = simulation.program.config
        self._worker = ThreadPoolExecutor(1)
        self._pending: Future[float] | None = None
        self._found = float("inf")
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
        to_host(fields.reshape(-1), self._host)
        self.file.write(self._host)

    def compare(self) -> None:
        """Have a thread of the host compute the residual, as soon as it is done with that of the time before.

        On a CPU the threads of the kernel compute it at once, from the fields where they are.
        """
        if self._shares_host:
            now, before = _velocities(self.fields()), _velocities(self._before)
            self._found = residual_of_threads(now, before, self._config.threads, self._config.pinning)
            self.fields.fields, self._before = self._before, self.fields.fields
            return
        if self._pending is not None:
            self._pending.result()
            self._velocities.reverse()
        to_host(_velocities(self.fields()), self._velocities[0])
        self._pending = self._worker.submit(self._residual, *self._velocities)

    @property
    def residual(self) -> float:
        """Return the last residual, for which it waits."""
        return self._pending.result() if self._pending else self._found

    @cached_property
    def file(self) -> FieldFile:
        """Return the file."""
        return FieldFile(self._folder)

    @cached_property
    def _host(self) -> Array:
        return self._on_host(self.fields.fields)

    @cached_property
    def _velocities(self) -> list[Array]:
        arrays = [self._on_host(_velocities(self.fields.fields)) for _ in range(2)]
        for array in arrays:
            array.fill(0)
        return arrays

    @cached_property
    def _before(self) -> Array:
        return self.fields.empty()

    def _on_host(self, array: Array) -> Array:
        return self._device.host_empty(array.size, str(array.dtype))

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


def _velocities(fields: Array) -> Array:
    return fields[1:].reshape(-1)


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
        every = {kind: _whole_launches(simulation, n) for kind, n in wanted.intervals.items()}
        for kind in every:  # whatever is made at first use
            output.kinds[kind]()
        check_fields(simulation, output.fields())
        _ = output.residual
        steps = _whole_launches(simulation, 2)
        step_s = min(_timed_s(simulation, lambda: simulation.step(steps)) for _ in range(FEWEST)) / steps
        found = [_measured(simulation, output, kind, n, step_s) for kind, n in every.items()]
        check_state(simulation)
        check_fields(simulation, output.fields())
    return tuple(found)


def _measured(simulation: Simulation, output: Outputs, kind: str, every: int, step_s: float) -> OutputCost:
    """Return what one kind costs. step_s: about the seconds of a step."""
    act = output.kinds[kind]
    alone_s = min(_timed_s(simulation, act) for _ in range(2))
    hidden_s = _OVERLAP * output.residual_s if kind == RESIDUAL else 0.0
    steps = _whole_launches(simulation, steps_apart(alone_s, step_s, every, hidden_s))

    def interval() -> None:
        simulation.step(steps)
        act()

    plain, events, end = list[float](), list[float](), time.perf_counter() + ENOUGH_S
    while len(events) < FEWEST or (len(events) < MOST and time.perf_counter() < end):
        _ = output.residual
        simulation.step(steps)  # caches hold what steps leave there
        plain.append(_timed_s(simulation, lambda: simulation.step(steps)))
        act()  # a residual is under way, and caches hold fields, when the steps begin
        events.append(_timed_s(simulation, interval) - plain[-1])
    return OutputCost(
        kind=kind,
        every=every,
        apart=steps,
        event_s=median(events),
        low_s=min(events),
        high_s=max(events),
        step_s=median(plain) / steps,
    )


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
    fluid = ~solid_in(case, window, xp) if case.geometry else ...
    for name, is_, ought in zip(("density", "u_x", "u_y", "u_z"), found, (rho, *velocity), strict=True):
        errors = xp.abs(is_ - ought)[fluid]
        error = float(errors.max()) if errors.size else 0.0
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
        return 4 * elements / median(_seconds(run) for _ in range(_RATE_RUNS))

    device.synchronize()
    here, threads = BACKENDS[device.environment.backend].shares_host, device.limits.cores
    now, before = hosts
    compared = partial(residual, now, before)
    if here:
        compared = partial(residual_of_threads, now, before, threads, "none")
    compared()  # compiled at first use
    found = OutputRates(
        copy_bytes_per_s=None if isinstance(source, np.ndarray) else rate(lambda: to_host(source, hosts[0])),
        file_bytes_per_s=rate(lambda: file.write(hosts[0])),
        residual_bytes_per_s=rate(compared),
        folder=str(file.folder),
    )
    file.close()
    return replace(found, **_pass_rates(device, threads)) if here else found


def _pass_rates(device: Device, threads: int) -> dict[str, Any]:
    """Return the rates of the pass of a CPU, in single precision, by the names of `OutputRates`."""
    from lbmtune.backend.cpu import compile_cpu  # here: Numba takes its time to come

    def seconds(text: str, case: Case, count: int) -> tuple[float, Case, Any]:
        config = parse_config(f"{text},storage=fp32,compute=fp32,threads={count}", "cpu")
        kernel = FieldsKernel(case, config, [places_of(case, config, 0, np).found], device, compile_cpu)
        state = device.empty(buffer_elements(case, config), "float32")
        state.fill(1e-3)
        fields = device.empty(MACROSCOPIC_FIELDS * case.sites, "float32")
        run = partial(kernel, state, 0, fields)
        run()
        return median(_seconds(run) for _ in range(_RATE_RUNS)), case, config

    def bytes_per_s(count: int) -> float:
        taken_s, case, config = seconds(_ROWS, box("d3q19", "bgk", _PASS_DOMAIN), count)
        return pass_bytes(case, config) / taken_s

    def values_per_s(text: str) -> float:
        taken_s, case, _ = seconds(text, box("d3q19", "bgk", _SCATTERED_DOMAIN), threads)
        return case.stencil.q * case.sites / taken_s

    return {
        "pass_bytes_per_s": bytes_per_s(threads),
        "thread_pass_bytes_per_s": bytes_per_s(1),
        "pass_values_per_s": {name: values_per_s(text) for name, text in _SCATTERED.items()},
        "threads": threads,
    }


def _seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin
