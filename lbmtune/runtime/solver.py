"""A flow that runs: what `lbmtune.load` returns."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.flows import initial_flow
from lbmtune.lattice import Lattice
from lbmtune.records.best import Best
from lbmtune.runtime.simulation import Simulation

Array = Any
"""A numpy array, or a cupy array on a GPU."""


class Solver:
    """A flow on a device. All values are in lattice units; arrays are indexed [z, y, x].

    best: the content of the file, with the expected speed.
    """

    def __init__(self, simulation: Simulation, best: Best) -> None:
        self.best, self._simulation = best, simulation
        self.initialise()

    @property
    def case(self) -> Case:
        """What is solved."""
        return self._simulation.case

    @property
    def xp(self) -> ModuleType:
        """The array module of the device: numpy or cupy."""
        return self._simulation.xp

    @property
    def steps_done(self) -> int:
        """Time steps since the state was set."""
        return self._simulation.steps_done

    def initialise(self, density: Array | None = None, velocity: Array | None = None) -> None:
        """Starts at the equilibrium of a density (nz, ny, nx) and a velocity (3, nz, ny, nx), or what broadcasts.

        What is left out is that of the case: Taylor-Green vortices in a box, rest elsewhere.
        """
        xp, case = self.xp, self.case
        usual_density, usual_velocity = initial_flow(case, xp)
        shape = case.domain[::-1]
        rho = xp.broadcast_to(usual_density if density is None else xp.asarray(density, dtype=xp.float64), shape)
        u = usual_velocity if velocity is None else xp.asarray(velocity, dtype=xp.float64)
        u = xp.broadcast_to(u.reshape(3, 1, 1, 1) if u.shape == (3,) else u, (3, *shape))
        # half the force is added when the velocity is read
        u = u - 0.5 * xp.asarray(case.force).reshape(3, 1, 1, 1) / rho
        self._simulation.initialise(equilibrium(rho, u, case.stencil, xp))

    def initialise_populations(self, populations: Array) -> None:
        """Starts at f_i, shape (q, nz, ny, nx), in the order of `case.stencil.velocities`."""
        self._simulation.initialise(populations)

    def step(self, steps: int = 1) -> None:
        """Advances the flow."""
        self._simulation.step(steps)

    def macroscopic(self) -> tuple[Array, Array]:
        """Density (nz, ny, nx) and velocity (3, nz, ny, nx), float64."""
        return self._simulation.macroscopic()

    def density(self) -> Array:
        """Density (nz, ny, nx), float64."""
        return self.macroscopic()[0]

    def velocity(self) -> Array:
        """Velocity (3, nz, ny, nx), float64."""
        return self.macroscopic()[1]

    def populations(self) -> Array:
        """f_i before collision, (q, nz, ny, nx), float64."""
        return self._simulation.populations()

    def time_per_step_s(self, steps: int = 100) -> float:
        """Seconds of a time step, averaged over some that are taken."""
        return self._simulation.device.time_s(lambda: self.step(steps)) / steps


def equilibrium(rho: Array, u: Array, lattice: Lattice, xp: ModuleType) -> Array:
    """Second-order equilibrium, (q, nz, ny, nx). Source: Qian, d'Humieres, Lallemand 1992."""
    uu = 1.5 * (u * u).sum(axis=0)

    def along(c: tuple[int, int, int]) -> Array:
        return c[0] * u[0] + c[1] * u[1] + c[2] * u[2]

    projections = [along(c) for c in lattice.velocities]
    return xp.stack(
        [float(w) * rho * (1 + cu * (3 + 4.5 * cu) - uu) for w, cu in zip(lattice.weights, projections, strict=True)]
    )
