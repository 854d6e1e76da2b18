"""Periodic Taylor-Green box."""

import math
from types import ModuleType

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows.flow import Array, Domain, Flow


def box(lattice_name: str, collision: str, domain: Domain, relaxation_rate: float = 1.6) -> Case:
    """Return a periodic box with Taylor-Green vortices as its initial state."""
    return Case("box", lattice_name, collision, domain, relaxation_rate)


def _initial(case: Case, xp: ModuleType) -> tuple[Array, Array]:
    from lbmtune.catalogue.problem.geometry import solid  # here: it loads NumPy, without which the command line starts

    density, velocity = taylor_green(case, xp)
    return (density, velocity * xp.asarray(~solid(case))) if case.geometry else (density, velocity)


def taylor_green(case: Case, xp: ModuleType) -> tuple[Array, Array]:
    """Return Taylor-Green vortices that fill the periodic box once, with peak velocity `velocity_scale` along x.

    The density includes their pressure (p = rho / 3). Source: Taylor, Green 1937; in two dimensions Taylor 1923.
    """
    nx, ny, nz = case.domain
    z, y, x = (2 * math.pi / n * xp.arange(n, dtype=xp.float64) for n in (nz, ny, nx))
    z, y, x = z[:, None, None], y[None, :, None], x[None, None, :]
    speed, ratio = case.velocity_scale, ny / nx  # of the amplitudes, so that the flow has no divergence
    velocity = xp.zeros((3, nz, ny, nx))
    velocity[0] = speed * xp.sin(x) * xp.cos(y) * xp.cos(z)
    velocity[1] = -speed * ratio * xp.cos(x) * xp.sin(y) * xp.cos(z)
    # what cos^2 z of the velocities' products leaves of each half of the pressure
    share_x, share_y = (1.0 if nz == 1 else nz**2 / (nz**2 + n**2) for n in (nx, ny))
    along_x = xp.cos(2 * x) * (1 + share_x * xp.cos(2 * z))
    along_y = ratio**2 * xp.cos(2 * y) * (1 + share_y * xp.cos(2 * z))
    pressure = speed**2 / 8 * (along_x + along_y)
    return 1 + 3 * pressure, velocity


FLOW = Flow(
    name="box",
    title="periodic Taylor-Green box",
    build=box,
    # nu = nx u / Re with the peak velocity of the vortices
    viscosity=lambda given, reynolds: given.domain[0] * given.velocity_scale / reynolds,
    initial=_initial,
)
