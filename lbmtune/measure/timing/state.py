"""The state of a timed simulation: filled with random values before a run, checked after it."""

from __future__ import annotations

import numpy as np

from lbmtune.backend.protocol import Array
from lbmtune.measure.timing.random_fill import fill_random
from lbmtune.runtime import Simulation

_PROBED_ELEMENTS = 4096
_HOST_ELEMENTS, _DEVICE_ELEMENTS = 1 << 22, 1 << 25
"""Elements that are checked at once: on a GPU enough to hide the overhead of launches."""


class WrongResultError(Exception):
    """The timed run left a state that cannot be right; the message says how."""


def excite(simulation: Simulation) -> None:
    """Fill all storage, ghost cells and padding included, with small random positive deviations.

    Every scheme and layout reads a state from it that flows, stays stable and settles to non-zero values.
    """
    simulation.steps_done = 0
    stencil, stored = simulation.case.stencil, simulation.program.config.stored
    amplitude = 0.01 * float(min(stencil.weights))
    for buffer in simulation.buffers.values():
        fill_random(buffer, amplitude, simulation.xp, stored)


def check_state(simulation: Simulation) -> None:
    """Raise WrongResultError if a value of the state is not finite, or if all are zero."""
    xp, state = simulation.xp, simulation.state
    elements = _HOST_ELEMENTS if xp is np else _DEVICE_ELEMENTS
    nonzero = False
    for start in range(0, state.size, elements):
        chunk = simulation.program.config.stored.deviations(state[start : start + elements], xp)
        if not bool(xp.isfinite(chunk).all()):
            raise WrongResultError("the timed run left values that are not finite numbers")
        nonzero = nonzero or bool(chunk.any())
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
    return all(bool((a == b).all()) for a, b in zip(before, after, strict=True))
