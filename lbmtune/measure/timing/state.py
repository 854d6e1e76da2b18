"""The case and the state of a timed simulation: filled with random values before a run, checked after it."""

from dataclasses import replace
from functools import lru_cache, singledispatch
from types import ModuleType

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.catalogue.boundaries.cut_links import whole
from lbmtune.catalogue.byte_lru_cache import current_device
from lbmtune.catalogue.precision import Storage
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import Real3
from lbmtune.runtime import Simulation

_HIGHEST_RATE = 1.8
_TILE_ELEMENTS = (1 << 20) - 3
_PROBED_ELEMENTS = 4096
_HOST_ELEMENTS, _DEVICE_ELEMENTS = 1 << 22, 1 << 25
"""Elements that are checked at once: on a GPU enough to hide the overhead of launches."""
_WIDE = 1e3
"""Largest deviation of a format that only a flow without any meaning leaves."""


class WrongResultError(Exception):
    """The timed run left a state that cannot be right; the message says how."""


def stable_case(case: Case) -> Case:
    """Return the case with a tenth of its velocities and pressure differences, and a relaxation rate up to 1.8.

    These values are launch arguments, so the kernel and its speed are the same.
    """
    patches = (replace(p, velocity=_tenth(p.velocity), density=1 + (p.density - 1) / 10) for p in case.patches)
    return replace(
        case,
        relaxation_rate=min(case.relaxation_rate, _HIGHEST_RATE),
        wall_velocity=_tenth(case.wall_velocity),
        inlet_velocity=_tenth(case.inlet_velocity),
        outlet_density=1 + (case.outlet_density - 1) / 10,
        patches=tuple(patches),
    )


def _tenth(velocity: Real3) -> Real3:
    x, y, z = (u / 10 for u in velocity)
    return x, y, z


def fill_random(array: Array, amplitude: float, xp: ModuleType, stored: Storage | None = None) -> None:
    """Fill a flat array with values of 0.5 to 1.5 amplitudes, which repeat after about a million elements.

    Hardware is faster and needs less power on zeros than on real data.
    stored: the format of deviations in the array; None: plain numbers of its type.
    """
    tile = _tile(amplitude, str(array.dtype), xp, current_device(xp), stored)
    whole = array.size // tile.size
    array[: whole * tile.size].reshape(whole, tile.size)[:] = tile
    array[whole * tile.size :] = tile[: array.size - whole * tile.size]


@lru_cache(maxsize=8)
def _tile(amplitude: float, dtype: str, xp: ModuleType, _device: int, stored: Storage | None) -> Array:
    """Return the values that repeat, on the current device; cached, because every trial needs them."""
    noise = amplitude * np.random.default_rng(1).uniform(0.5, 1.5, _TILE_ELEMENTS)
    return xp.asarray(stored.stored(noise, np) if stored else noise.astype(dtype))


@singledispatch
def excite(simulation: Simulation) -> None:
    """Fill all storage, ghost cells and padding included, with small random positive deviations.

    Populations that are stored as they are then get the weights of their directions, too. Every scheme and layout
    reads a state from it that flows, stays stable and settles to non-zero values.
    """
    simulation.steps_done = 0
    stencil, stored = simulation.case.stencil, simulation.program.config.stored
    amplitude = 0.01 * float(min(stencil.weights))
    for buffer in simulation.buffers.values():
        fill_random(buffer, amplitude, simulation.xp, stored)
    if not simulation.program.config.stored.shifted:
        _initialise_random(simulation, amplitude)


def _initialise_random(simulation: Simulation, amplitude: float) -> None:
    """Set the populations of all cells to their weights and such deviations, some planes at a time."""
    case, xp = simulation.case, simulation.xp
    last, values = case.stencil.dimensions - 1, case.stencil.q * case.sites
    planes = max(1, _DEVICE_ELEMENTS * case.domain[last] // values)
    for start in range(0, case.domain[last], planes):
        part = list(whole(case.domain))
        part[last] = range(start, min(start + planes, case.domain[last]))
        x, y, z = part
        populations = xp.empty((case.stencil.q, len(z), len(y), len(x)))
        fill_random(populations.reshape(-1), amplitude, xp)
        populations += simulation.kept.weights
        simulation.initialise(populations, (x, y, z))


def all_true(flags: Array) -> bool:
    """Return whether all flags are true.

    By the least of their bytes, for which CuPy has a kernel; those of `all` and `any` take seconds to compile.
    """
    return not flags.size or bool(flags.view("uint8").min())


def not_finite(stored: Storage) -> WrongResultError:
    """Return the error of a state with values that are no numbers, which need not be the fault of the kernel."""
    said = "the timed run left values that are not finite numbers"
    if stored.largest > _WIDE:
        return WrongResultError(said)
    return WrongResultError(
        f"{said}: the kernel is wrong, or the flow leaves the range of {stored.name}, which holds |f_i - w_i| up to "
        f"{stored.largest:.4g}"
    )


@singledispatch
def check_state(simulation: Simulation) -> None:
    """Raise WrongResultError if a value of the state is not finite, or if all are zero."""
    xp, state = simulation.xp, simulation.state
    elements = _HOST_ELEMENTS if xp is np else _DEVICE_ELEMENTS
    nonzero = False
    for start in range(0, state.size, elements):
        chunk = simulation.program.config.stored.deviations(state[start : start + elements], xp)
        if not all_true(xp.isfinite(chunk)):
            raise not_finite(simulation.program.config.stored)
        nonzero = nonzero or bool(chunk.min()) or bool(chunk.max())
    if not nonzero:
        raise WrongResultError("the timed run left nothing but zeros")


def probed(simulation: Simulation) -> list[Array]:
    """Return random elements of each buffer: regular ones might all lie in padding."""
    random = np.random.default_rng(1)
    return [
        b[simulation.xp.asarray(random.integers(b.size, size=_PROBED_ELEMENTS))] for b in simulation.buffers.values()
    ]


def unchanged(before: list[Array], after: list[Array]) -> bool:
    """Tell if all probed elements are equal."""
    return all(all_true(a == b) for a, b in zip(before, after, strict=True))
