"""Density and velocity of a state between two launches, by a kernel of its own, for kernels of every family."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Compiler, Device, Executable
from lbmtune.catalogue.boundaries.cell_flags import WORDS
from lbmtune.catalogue.footprint import MACROSCOPIC_FIELDS
from lbmtune.codegen.cuda.macroscopic_pass import ALONG, CELLS, PLACES, macroscopic_pass
from lbmtune.codegen.program import MACROSCOPICS, Launch
from lbmtune.runtime.macroscopic_places import Boxed, Listed, Places, Slab, factors, places_of
from lbmtune.runtime.simulation import Simulation
from lbmtune.runtime.states import summed

Array = Any
_CODES = 1 << 16


class MacroscopicPass:
    """Writes density and velocity of a simulation's state to `fields`, (4, cells), in the compute precision.

    They are those that `Simulation.macroscopic` returns: as before the collision of the next step, completed at inlets
    and outlets. Solid cells have density one and no velocity. In states of moments, inlets do not occur.
    """

    def __init__(self, simulation: Simulation, device: Device, compiler: Compiler) -> None:
        """Make the tables and the kernel, and allocate the fields on a device, that of the simulation.

        compiler: for it. Raises CompileError, OutOfMemoryError and, for want of memory for tables, MemoryError.
        """
        self._simulation = simulation
        config, case, xp = simulation.program.config, simulation.case, simulation.xp
        self._real = np.dtype(config.computed.dtype).type
        self._parities = [places_of(case, config, p, xp) for p in range(config.propagation.period)]
        self._factors = factors(case, config)
        self.fields = device.empty(MACROSCOPIC_FIELDS * case.sites, config.computed.dtype).reshape(4, -1)
        self.fields[0], self.fields[1:] = 1, 0  # of solid cells, which a list does not have
        self._on_device = _on_device(self, device, compiler) if simulation.program.target == "cuda" else None

    def __call__(self) -> Array:
        """Enqueue the pass over the state as it is now; return the fields."""
        simulation = self._simulation
        places = self._parities[simulation.parity]
        if self._on_device:
            self._launch(*self._on_device, places)
        else:
            self._compute(places)
        if places.gains:
            self._add(places)
        for slab in places.slabs:
            self._complete(slab)
        return self.fields

    def _launch(self, executable: Executable, launch: Launch, places: Places) -> None:
        simulation, found = self._simulation, places.found
        values: dict[str, Any] = {"f0": simulation.state, MACROSCOPICS: self.fields}
        values |= dict(zip(("nx", "ny", "nz"), map(np.int32, simulation.case.domain), strict=True))
        values |= {f"force_{a}": self._real(f) for a, f in zip("xyz", simulation.case.force, strict=True)}
        if isinstance(found, Boxed):
            words = found.along if found.words is None else found.words  # a pointer that the kernel does not use
            values |= {ALONG: found.along, WORDS: words}
            grid = launch.grid(simulation.case.domain, simulation.program.frame)
        else:
            values |= {PLACES: found.places, CELLS: found.cells, "sites": np.int32(len(found.cells))}
            grid = (-(-len(found.cells) // launch.covers[0]), 1, 1)
        executable.launch(launch, grid, [values[name] for name in launch.arguments])

    def _compute(self, places: Places) -> None:
        from lbmtune.backend.cpu import macroscopic_pass as compiled  # here: Numba takes its time to come

        simulation, found, config = self._simulation, places.found, self._simulation.program.config
        team: tuple[int, str] = (config.threads, getattr(config, "pinning", "none"))  # type: ignore[attr-defined]
        state = simulation.state
        state = state.view(np.uint16) if state.dtype == np.float16 else state
        first = np.array([float(config.stored.shifted), *(0.5 * force for force in simulation.case.force)], self._real)
        sums = np.array(self._factors, self._real)
        if isinstance(found, Listed):
            compiled.of_list(*team, state, self._codes, found.places, found.cells, sums, first, self.fields)
            return
        nx = simulation.case.domain[0]
        steps = np.diff(found.along[0, :, 1 : nx - 1])
        straight = (steps == 1).all(axis=1) & (nx > 2)
        words = np.empty(0, np.uint32) if found.words is None else found.words
        extents = simulation.case.domain
        compiled.of_box(*team, state, self._codes, found.along, straight, words, sums, first, self.fields, extents)

    @cached_property
    def _codes(self) -> Array:
        """The number of each 16-bit code, as stored."""
        stored = self._simulation.program.config.stored
        if stored.bytes != 2:
            return np.empty(0, self._real)
        codes = np.arange(_CODES, dtype=np.uint16)
        return stored.deviations(codes if stored.codes else codes.view(np.float16), np, 1.0).astype(self._real)

    def _add(self, places: Places) -> None:
        """Add what moving walls add to density and momentum."""
        assert places.gains is not None
        cells, added = places.gains
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


def _on_device(one: MacroscopicPass, device: Device, compiler: Compiler) -> tuple[Executable, Launch]:
    """Return the compiled kernel of a GPU and its launch."""
    simulation, found = one._simulation, one._parities[0].found
    words = isinstance(found, Boxed) and found.words is not None
    listed = isinstance(found, Listed)
    program = macroscopic_pass(simulation.program, one._factors, listed=listed, words=words)
    return device.load(program, compiler(program)), program.period[0][0]
