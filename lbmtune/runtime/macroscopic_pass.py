"""Density and velocity of a state between two launches, by a kernel of its own, for kernels of every family."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Compiler, Device
from lbmtune.catalogue.boundaries.cell_flags import WORDS
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.macroscopic_tables import (
    ALONG,
    CELLS,
    FORCES,
    OTHERS,
    PLACES,
    RUNS,
    SINGLES,
    SITES,
    VECTORS,
)
from lbmtune.codegen.program import MACROSCOPICS, Program
from lbmtune.runtime.macroscopic_places import Boxed, Listed, Slab, factors, places_of, vectors
from lbmtune.runtime.simulation import Simulation
from lbmtune.runtime.states import summed

Array = Any


class FieldsKernel:
    """The kernel that computes density and velocity from the values of a state, with its tables on the device."""

    def __init__(
        self, case: Case, config: KernelConfig, parities: Sequence[Boxed | Listed], device: Device, compiler: Compiler
    ) -> None:
        """Compile and load it. parities: where the values lie in states of each. Raises CompileError."""
        self._program = program = _program(case, config, parities[0])
        self._executable, self._launch = device.load(program, compiler(program)), program.period[0][0]
        real = np.dtype(config.computed.dtype).type
        scalars: dict[str, Any] = dict(zip(("nx", "ny", "nz"), map(np.int32, case.domain), strict=True))
        scalars |= {name: real(force) for name, force in zip(FORCES, case.force, strict=True)}
        self._values = [scalars | _tables(case, program, found, device.xp) for found in parities]

    def __call__(self, state: Array, parity: int, fields: Array) -> None:
        """Enqueue it. fields: contiguous, of four times the cells; those of cells that a list does not have stay."""
        values, launch, program = self._values[parity], self._launch, self._program
        if SITES in values:
            grid = (-(-int(values[SITES]) // launch.covers[0]), 1, 1)
        else:
            grid = launch.grid(program.case.domain, program.frame)
        values = values | {"f0": state, MACROSCOPICS: fields.reshape(-1)}
        self._executable.launch(launch, grid, [values[name] for name in launch.arguments])


def _program(case: Case, config: KernelConfig, found: Boxed | Listed) -> Program:
    module = import_module(f"lbmtune.codegen.{config.backend}.macroscopic_pass")  # here: workers start without it
    words = isinstance(found, Boxed) and found.words is not None
    listed = isinstance(found, Listed)
    made: Program = module.macroscopic_pass(case, config, factors(case, config), listed=listed, words=words)
    return made


def _tables(case: Case, program: Program, found: Boxed | Listed, xp: Any) -> dict[str, Any]:
    """Return the arguments that depend on the parity, by name."""
    if isinstance(found, Listed):
        return {PLACES: found.places.reshape(-1), CELLS: found.cells, SITES: np.int32(len(found.cells))}
    words = xp.zeros(1, xp.uint32) if found.words is None else found.words  # the kernel does not read those
    values = {ALONG: found.along.reshape(-1), WORDS: words}
    if RUNS in program.arguments:
        from lbmtune.codegen.cpu.macroscopic_pass import lanes_of

        runs, others = vectors(found, case.domain[0], lanes_of(program.config))
        values |= {RUNS: runs, VECTORS: np.int32(len(runs)), OTHERS: others, SINGLES: np.int32(len(others))}
    return values


class MacroscopicPass:
    """Writes density and velocity of a simulation's state to `fields`, (4, cells), in the compute precision.

    They are those that `Simulation.macroscopic` returns: as before the collision of the next step, completed at inlets
    and outlets. Solid cells have density one and no velocity. In states of moments, inlets do not occur.
    """

    def __init__(self, simulation: Simulation, device: Device, compiler: Compiler) -> None:
        """Make the tables and the kernel, and allocate the fields on a device, that of the simulation.

        compiler: for it. Raises CompileError, OutOfMemoryError and, for want of memory for tables, MemoryError.
        """
        self._simulation, self._device = simulation, device
        config, case, xp = simulation.program.config, simulation.case, simulation.xp
        self._parities = [places_of(case, config, p, xp) for p in range(config.propagation.period)]
        self._kernel = FieldsKernel(case, config, [one.found for one in self._parities], device, compiler)
        self.fields = self.empty()

    def empty(self) -> Array:
        """Return new fields, with those of solid cells, which a list does not have."""
        case, config = self._simulation.case, self._simulation.program.config
        fields = self._device.empty(MACROSCOPIC_FIELDS * case.sites, config.computed.dtype)
        fields = fields.reshape(MACROSCOPIC_FIELDS, -1)
        fields[0], fields[1:] = 1, 0
        return fields

    def __call__(self) -> Array:
        """Enqueue the pass over the state as it is now; return the fields."""
        simulation = self._simulation
        places = self._parities[simulation.parity]
        self._kernel(simulation.state, simulation.parity, self.fields)
        if places.gains:
            self._add(*places.gains)
        for slab in places.slabs:
            self._complete(slab)
        return self.fields

    def _add(self, cells: Array, added: Array) -> None:
        """Add what moving walls add to density and momentum."""
        before = self.fields[:, cells]
        rho = before[0] + added[0]
        self.fields[1:, cells] = (before[1:] * before[0] + added[1:]) / rho
        self.fields[0, cells] = rho

    def _complete(self, slab: Slab) -> None:
        """Complete the populations of a layer at an inlet or outlet, and replace its fields."""
        from lbmtune.catalogue.boundaries.completion import reconstructed  # here: SymPy takes its time to come

        simulation = self._simulation
        case, xp, kept = simulation.case, simulation.xp, simulation.kept
        stored = kept.config.stored
        f = stored.deviations(simulation.state[slab.indices], xp) + slab.gain + (kept.weights if stored.shifted else 0)
        rho, momentum = summed(reconstructed(f, case, xp, slab.window), case.stencil)
        velocity = [(m + 0.5 * force) / rho for m, force in zip(momentum, case.force, strict=True)]
        here = (slice(None), *(slice(part.start, part.stop) for part in reversed(slab.window)))
        layer = xp.stack([xp.broadcast_to(xp.asarray(one), rho.shape) for one in (rho, *velocity)])
        if slab.solid is not None:
            still = xp.asarray([1.0, 0.0, 0.0, 0.0]).reshape(4, 1, 1, 1)
            layer = xp.where(slab.solid, still, layer)
        self.fields.reshape(4, *case.domain[::-1])[here] = layer
