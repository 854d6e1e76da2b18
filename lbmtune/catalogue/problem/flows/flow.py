"""A flow: a case built from a few parameters, the viscosity of a Reynolds number, and an initial state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3

Array = Any
Domain = tuple[int, int, int]


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of flows, in lattice units; each flow takes those that it has.

    lid: speed of a moving wall; force: body force density along `axis`; velocity_scale: peak initial velocity;
    inlet: speed at an inlet, None for the flow's default; geometry: solid cells.
    """

    lattice: str
    collision: str
    domain: Domain
    lid: float = 0.1
    force: float = 1e-5
    axis: str = "x"
    velocity_scale: float = 0.05
    inlet: float | None = None
    geometry: str = ""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A flow problem. build: returns the case of a lattice, a collision, a domain, a relaxation rate and `options`.

    viscosity: returns that of a Reynolds number, or is the reason why the flow has none; initial: returns density
    (nz, ny, nx) and velocity (3, nz, ny, nx) of a case as arrays of a module, None for rest.
    """

    name: str
    title: str
    build: Callable[..., Case]
    options: Callable[[Parameters], Mapping[str, Any]] = lambda _: {}
    viscosity: Callable[[Parameters, float], float] | str
    initial: Callable[[Case, ModuleType], tuple[Array, Array]] | None = None

    def case(self, given: Parameters, relaxation_rate: float) -> Case:
        """Return the case of some parameters."""
        return self.build(given.lattice, given.collision, given.domain, relaxation_rate, **self.options(given))


def along(axis: str, force: float) -> Real3:
    """Return a body force along an axis."""
    x, y, z = (force * (axis == name) for name in "xyz")
    return x, y, z
