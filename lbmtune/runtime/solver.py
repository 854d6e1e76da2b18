"""A running flow, which `lbmtune.load` returns, and changes of its case that need no other kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from numbers import Real
from operator import index
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import SPEED_OF_SOUND, Real3
from lbmtune.catalogue.problem.flows import initial_flow
from lbmtune.errors import InputError
from lbmtune.lattice import Lattice
from lbmtune.runtime.gathered import Gathered
from lbmtune.runtime.simulation import Simulation

if TYPE_CHECKING:  # it takes long to load, and workers start often
    from lbmtune.records.best_json.document import Best

Array = Any
"""A numpy array, or a cupy array on a GPU."""


def changed(case: Case, recorded: Case, changes: Mapping[str, Any]) -> Case:
    """Return the case with other argument values. recorded: the case that the kernel was made for.

    Raises InputError for a wrong value, or one that the kernel has no argument for.
    """
    values = {name: _READ[name](name, value) for name, value in changes.items()}
    if any(values.get("force", ())) and not recorded.forced:
        raise InputError(
            f"force={values['force']} is not supported for this kernel (use (0, 0, 0), or a study of a forced case): "
            "it was made without a body force."
        )
    if any(values.get("wall_velocity", ())) and "moving" not in recorded.faces:
        raise InputError(
            f"wall_velocity={values['wall_velocity']} is not supported for this kernel (use (0, 0, 0), or a study of "
            "such a case): no wall of this kernel moves."
        )
    result = replace(case, **values)
    if "domain" in changes and (result.patches or result.geometry):
        from lbmtune.catalogue.problem.patch_checks import check_cells  # here: arrays may take long to make

        check_cells(result)
    return result


def _three(name: str, value: Any, kind: Callable[[Any], Any], what: str, use: str) -> tuple[Any, Any, Any]:
    try:
        x, y, z = map(kind, value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is not three {what} (use {use}).") from None
    return x, y, z


def _number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} is not a number.") from None


_vector = partial(_three, kind=float, what="numbers", use="(x, y, z)")
_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "domain": partial(_three, kind=index, what="whole numbers", use="(nx, ny, nz)"),
    "relaxation_rate": _number,
    "force": _vector,
    "wall_velocity": _vector,
}


def _argument(name: str, meaning: str) -> Any:
    """Return a property: a value of the case, which the next steps take as an argument."""

    def change(solver: Solver, value: Any) -> None:
        solver._simulation.change_case(changed(solver.case, solver.best.case, {name: value}))

    return property(lambda solver: getattr(solver.case, name), change, doc=f"{meaning} Setting raises InputError.")


class Solver:
    """A flow on a device, or on several. All values are in lattice units; arrays are indexed [z, y, x].

    best: the content of the file, with the expected speed. On several devices arrays are those of NumPy.
    """

    def __init__(self, simulation: Simulation | Gathered, best: Best) -> None:
        self.best, self._simulation = best, simulation
        self.initialise()

    def __repr__(self) -> str:
        """Return flow, domain, configuration, device and time as text."""
        case, config = self.case, self._simulation.program.config
        extents = "x".join(map(str, case.domain))
        kernel = f"{config.scheme} {config.memory.name} {config.storage}"
        return (
            f"<Solver: {case.flow} {case.lattice} {case.collision} on {extents} cells, {kernel}, "
            f"{self._simulation.place_text}, {self.steps_done} steps done>"
        )

    @property
    def case(self) -> Case:
        """Return the case that is solved."""
        return self._simulation.case

    relaxation_rate: float = _argument(
        "relaxation_rate", "Relaxation rate omega of the next steps; may be set between steps."
    )
    force: Real3 = _argument(
        "force", "Body force (x, y, z) of the next steps; may be set between steps if the kernel has a force."
    )
    wall_velocity: Real3 = _argument(
        "wall_velocity",
        "Velocity (x, y, z) of the moving walls in the next steps; may be set between steps if a wall moves. "
        "Schemes that complete cut links on reading apply it also to what the last step sent there.",
    )

    @property
    def xp(self) -> ModuleType:
        """Return the array module of the device: numpy or cupy."""
        return self._simulation.xp

    @property
    def steps_done(self) -> int:
        """Return the time steps since the state was set."""
        return self._simulation.steps_done

    @property
    def held(self) -> Array | None:
        """Return which cells this process has, bool, (nz, ny, nx); None: all. Fields are NaN in others."""
        return self._simulation.held if isinstance(self._simulation, Gathered) and self._simulation.apart else None

    def initialise(self, density: Array | None = None, velocity: Array | None = None) -> None:
        """Set the equilibrium of a density (nz, ny, nx) and a velocity (3, nz, ny, nx), or what broadcasts.

        Defaults are those of the case: Taylor-Green vortices in a box, rest elsewhere. A velocity may be three
        numbers. Raises InputError for arrays of another shape, and for values at which no flow can be computed.
        """
        xp, case = self.xp, self.case
        usual_density, usual_velocity = initial_flow(case, xp)
        shape = case.domain[::-1]
        rho = _shaped("density", usual_density if density is None else density, shape, xp)
        u = _shaped("velocity", usual_velocity if velocity is None else velocity, (3, *shape), xp)
        if density is not None and not bool(((rho > 0) & xp.isfinite(rho)).all()):
            raise InputError("density is not a positive number everywhere (use values near one).")
        if velocity is not None and not bool(((u * u).sum(axis=0) < SPEED_OF_SOUND**2).all()):
            raise InputError(
                f"velocity is not below the speed of sound, {SPEED_OF_SOUND:.3f}, everywhere (use lattice units: small "
                "values, such as 0.1)."
            )
        # half the force is added when the velocity is read
        u = u - 0.5 * xp.asarray(case.force).reshape(3, 1, 1, 1) / rho
        self._simulation.initialise(equilibrium(rho, u, case.stencil, xp))

    def initialise_populations(self, populations: Array) -> None:
        """Set f_i, shape (q, nz, ny, nx), in the order of `case.stencil.velocities`. Raises InputError."""
        shape = (self.case.stencil.q, *self.case.domain[::-1])
        given = getattr(populations, "shape", None)
        if given != shape:
            what = f"have the shape {given}" if given is not None else f"are a {type(populations).__name__}"
            raise InputError(f"populations {what} (use an array of the shape (q, nz, ny, nx) = {shape}).")
        if not bool(np.isfinite(populations).all()):
            raise InputError("populations are not numbers everywhere (use finite values).")
        self._simulation.initialise(populations)

    def step(self, steps: int = 1) -> None:
        """Advance the flow by any number of time steps.

        Multiples of `best.kernel.steps` are fastest; a kernel of one step does the rest. Raises InputError for what is
        no number of steps, and for other numbers if the file has no kernel of one step, or on several devices.
        """
        if not isinstance(steps, Real) or not float(steps).is_integer():
            raise InputError(f"steps={steps} is not a whole number (use the number of time steps).")
        if steps < 0:
            raise InputError(f"steps={steps} is negative (use the number of time steps).")
        self._simulation.step(int(steps))

    def macroscopic(self) -> tuple[Array, Array]:
        """Return density (nz, ny, nx) and velocity (3, nz, ny, nx), float64. Warns if the flow has diverged."""
        density, velocity = self._simulation.macroscopic()
        own = (density, velocity) if self.held is None else (density[self.held], velocity[:, self.held])
        if not bool(self.xp.isfinite(own[0].sum() + own[1].sum())):
            warnings.warn(
                f"the flow has diverged: after {self.steps_done} steps its values are not numbers everywhere; begin "
                "again with lower velocities or force, or a lower relaxation_rate, which is more viscosity.",
                stacklevel=2,
            )
        return density, velocity

    def density(self) -> Array:
        """Return the density (nz, ny, nx), float64."""
        return self.macroscopic()[0]

    def velocity(self) -> Array:
        """Return the velocity (3, nz, ny, nx), float64."""
        return self.macroscopic()[1]

    def populations(self) -> Array:
        """Return f_i before collision, (q, nz, ny, nx), float64."""
        return self._simulation.populations()

    def time_per_step_s(self, steps: int = 100) -> float:
        """Return the seconds per time step, averaged over at least `steps`, which are rounded up to whole launches.

        The flow advances by them. Raises InputError if steps is not positive.
        """
        if steps < 1:
            raise InputError(f"steps={steps} is not positive (use the number of time steps to average over).")
        at_once = self._simulation.steps_at_once
        taken = -(-steps // at_once) * at_once
        return self._simulation.time_s(taken) / taken


def _shaped(name: str, value: Array, shape: tuple[int, ...], xp: ModuleType) -> Array:
    """Return a value as float64, broadcast to a shape; three numbers stand for a uniform vector field."""
    try:
        array = xp.asarray(value, dtype=xp.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} is not an array of numbers (use the shape {shape}).") from None
    if len(shape) == 4 and array.shape == (3,):
        array = array.reshape(3, 1, 1, 1)
    try:
        return xp.broadcast_to(array, shape)
    except ValueError:
        axes = "(3, nz, ny, nx)" if len(shape) == 4 else "(nz, ny, nx)"
        raise InputError(f"{name} has the shape {array.shape} (use {axes} = {shape}, or what broadcasts).") from None


def equilibrium(rho: Array, u: Array, lattice: Lattice, xp: ModuleType) -> Array:
    """Return the second-order equilibrium, (q, nz, ny, nx). Source: Qian, d'Humieres, Lallemand 1992."""
    uu = 1.5 * (u * u).sum(axis=0)

    def along(c: tuple[int, int, int]) -> Array:
        return c[0] * u[0] + c[1] * u[1] + c[2] * u[2]

    projections = [along(c) for c in lattice.velocities]
    return xp.stack(
        [float(w) * rho * (1 + cu * (3 + 4.5 * cu) - uu) for w, cu in zip(lattice.weights, projections, strict=True)]
    )
