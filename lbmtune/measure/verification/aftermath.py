"""Prove the state that timed launches have left: it advances once more, beside the oracle, on some of its cells.

A kernel may be right at first and go wrong after many launches: a barrier word that wraps, flags that are not reset.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import singledispatch
from math import fsum, isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import Window, solid_in
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.faces import LOCAL
from lbmtune.measure.timing.state import WrongResultError, excite, not_finite
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import map_parts, map_slabs
from lbmtune.measure.verification.verify import describe_failure, deviation, rounding_bounds
from lbmtune.runtime import Simulation
from lbmtune.runtime.states import State

Array = Any
_SLAB_UPDATES, _LINE_UPDATES = 1 << 16, 1 << 14
"""Most updates of cells by the oracle for a slab and for a line: a few hundredths of what measuring takes.

A cell of a launch of several steps depends on a cube. A line of one step along 256 cells takes 2304 updates; one of
four steps has 32 cells with 12,960 updates, which are 1 to 2 ms.
"""
_LEAST, _MOST = 2.0**-14, 0.1
"""Deviations from the weights below which some formats round absolutely, and above which a flow may amplify
roundings."""

_COHERENT = 4
"""Roundings allowed over those of noise of the same size (`rounding_bounds`), in whose sums they cancel: cumulants in
single precision exceeded those by 7 % in one cell of 10^5."""


class Place(NamedTuple):
    """Cells that are compared, and those that are read because they affect them."""

    part: Window
    read: Window


@singledispatch
def check_line(simulation: Simulation) -> None:
    """Compare a line of cells along y or z at a random place, which takes little of the time of a trial.

    Raises WrongResultError.
    """
    random, dimensions = np.random.default_rng(simulation.steps_done), simulation.case.stencil.dimensions
    axis = int(random.integers(1, dimensions))  # rows of cells lie along x, so that a line along it is but one of them
    line = _place(simulation.case, _steps(simulation), (axis,), random, _LINE_UPDATES)
    _compare(simulation, [line], simulation.steps_done)


@singledispatch
def check_slab(simulation: Simulation) -> None:
    """Compare a thin slab across one axis at a random place, from the state as it is. Raises WrongResultError."""
    random = np.random.default_rng(simulation.steps_done)
    axis = int(random.integers(simulation.case.stencil.dimensions))
    _compare(simulation, [_slab(simulation, axis, random)], simulation.steps_done)


@singledispatch
def check_slabs(simulation: Simulation, timed_steps: int) -> None:
    """Compare a thin slab across each axis at a random place, from random values.

    A state may have settled so far that it does not show what no longer advances. A refill leaves what else the kernel
    keeps: words of barriers, sums between tiles. timed_steps: before the refill. Raises WrongResultError.
    """
    excite(simulation)
    simulation.step(simulation.parity_steps)  # until ghost cells are those of the state
    random = np.random.default_rng(timed_steps)
    slabs = [_slab(simulation, axis, random) for axis in range(simulation.case.stencil.dimensions)]
    _compare(simulation, slabs, timed_steps)


def _slab(simulation: Simulation, axis: int, random: np.random.Generator) -> Place:
    return _place(simulation.case, _steps(simulation), {*range(3)} - {axis}, random, _SLAB_UPDATES)


def _steps(simulation: Simulation) -> int:
    """Return the steps of a comparison: a launch of several, or all parities; resident blocks exchange values twice."""
    program = simulation.program
    return program.steps if program.steps > 1 else simulation.parity_steps * (1 + program.persistent)


def _place(case: Case, steps: int, along: Collection[int], random: np.random.Generator, most_updates: int) -> Place:
    """Return cells at a random place: one across, and all along some axes, or fewer if that were too many updates.

    Around what is compared a layer is read for each step, beyond a periodic face those of the image.
    """
    lengths = [n if axis in along else 1 for axis, n in enumerate(case.domain)]
    while True:
        ranges = [_ranges(case, axis, length, steps, random) for axis, length in enumerate(lengths)]
        x, y, z = ranges
        place = Place((x[0], y[0], z[0]), (x[1], y[1], z[1]))
        if max(lengths) == 1 or steps * prod(map(len, place.read)) <= most_updates:
            return place
        longest = lengths.index(max(lengths))
        lengths[longest] = -(-lengths[longest] // 2)


def _ranges(case: Case, axis: int, length: int, layers: int, random: np.random.Generator) -> tuple[range, range]:
    """Return the cells along an axis that are compared and read."""
    n = case.domain[axis]
    if length == n:
        return range(n), range(n)
    start = int(random.integers(n - length + 1))
    low, high = start - layers, start + length + layers
    if case.faces[2 * axis] != "periodic":
        low, high = max(0, low), min(n, high)
    return range(start, start + length), range(low, high)


def _compare(simulation: Simulation, places: Sequence[Place], timed_steps: int) -> None:
    """Advance the state and compare it with the oracle at some places, on the host: few cells are slow on a GPU."""
    steps, case = _steps(simulation), simulation.case
    config = simulation.program.config
    kept = simulation.kept_on_host

    def expect(known: tuple[Place, Array]) -> tuple[Array, list[float]]:
        place, before = known
        return _expected(kept, before, place, steps, simulation.walls)

    before = [_populations(simulation, place.read) for place in places]
    simulation.step(steps)
    expected = map_parts(expect, list(zip(places, before, strict=True)), np)
    for place, (state, reached) in zip(places, expected, strict=True):
        if max(reached) > _MOST:
            continue
        bounds = rounding_bounds(case, config, _COHERENT * steps, max(reached), reached)
        after = _populations(simulation, place.part)
        found = deviation(kept, [after], state, steps, bounds, place.part)
        if not found.passed:
            raise WrongResultError(f"the state goes wrong after {timed_steps} timed steps: {describe_failure(found)}")


def _expected(kept: State, f: Array, place: Place, steps: int, walls: Walls) -> tuple[Array, list[float]]:
    """Return the state of the compared cells after some steps, and the largest deviation of each population.

    f: the state of the cells that are read. Raises WrongResultError if it is not finite.
    """
    case, xp = kept.case, kept.xp
    if case.geometry and walls is not Walls.IMPLICIT:
        f[:, solid_in(case, place.read, xp)] = kept.weights[:, 0, 0]  # what is stored there is of no step
    first, read = _reached(kept, f, place.read), place.read
    for left in reversed(range(steps)):
        needed = _around(place, left)
        f, read = oracle.step(f, case, xp, read, walls=walls, part=needed), needed
    return f, [max(_LEAST, *both) for both in zip(first, _reached(kept, f, place.part), strict=True)]


def _reached(kept: State, f: Array, window: Window) -> list[float]:
    """Return the largest deviation of each population of the fluid cells of a window from its weight."""
    xp, weights = kept.xp, kept.weights
    if kept.case.geometry:
        f = xp.where(solid_in(kept.case, window, xp), weights, f)
    rows, weights = f.reshape(len(f), -1), weights[:, 0, 0, 0]
    found: list[float] = xp.maximum(rows.max(axis=1) - weights, weights - rows.min(axis=1)).tolist()
    _require_finite(found, kept)
    return found


def _require_finite(values: Iterable[float], kept: State) -> None:
    if not all(map(isfinite, values)):
        raise not_finite(kept.config.stored)


def _around(place: Place, layers: int) -> Window:
    """Return the compared cells with so many of the layers around them that are read."""
    x, y, z = (
        range(max(r.start, p.start - layers), min(r.stop, p.stop + layers))
        for p, r in zip(place.part, place.read, strict=True)
    )
    return x, y, z


def _populations(simulation: Simulation, window: Window) -> Array:
    """Return the populations of a window as an array of the host."""
    first, *others = simulation.population_blocks(window, on_host=True)
    return np.concatenate([first, *others]) if others else first  # without a copy, as of all but large windows


class Sums(NamedTuple):
    """Sums over the fluid cells of a state, to compare with those of a later one.

    totals: of f_i - w_i, by direction; reached: a bound of the largest deviation of each direction.
    """

    steps_done: int
    totals: tuple[float, ...]
    reached: tuple[float, ...]


@singledispatch
def sums(simulation: Simulation) -> Sums:
    """Return the sums of the state as it is. Raises WrongResultError if it is not finite."""
    kept, xp = simulation.kept, simulation.xp
    simulation.device.synchronize()

    def of(parts: Sequence[Window]) -> list[tuple[list[float], list[float]]]:
        found = []
        for part in parts:
            fluid = ~solid_in(kept.case, part, xp) if kept.case.geometry else None
            totals, reached = kept.totals(simulation.state, simulation.parity, part, fluid)
            found.append((totals.tolist(), reached.tolist()))
        return found

    totals, reached = zip(*map_slabs(of, kept.case, xp, thin=True), strict=True)
    each = zip(*totals, strict=True), zip(*reached, strict=True)
    found = Sums(simulation.steps_done, tuple(map(fsum, each[0])), tuple(map(max, each[1])))
    _require_finite((*found.totals, *found.reached), kept)
    return found


@singledispatch
def check_sums(simulation: Simulation, before: Sums) -> None:
    """Raise WrongResultError if a sum that every step conserves has changed by more than roundings may change it.

    Each step rounds each population within `rounding_bounds`; in the worst case all round in the same direction, so
    that a sum of populations moves by at most the number of cells times steps times the bounds of its populations.
    """
    case, after = simulation.case, sums(simulation)
    if max(after.reached) > _MOST:
        return
    steps, reached = after.steps_done - before.steps_done, tuple(map(max, before.reached, after.reached))
    bounds = rounding_bounds(case, simulation.program.config, steps, max(reached), reached)
    for name, factors in _conserved(case, simulation.walls).items():
        change = sum(c * (b - a) for c, a, b in zip(factors, before.totals, after.totals, strict=True))
        most = case.fluid_sites * sum(abs(c) * bound for c, bound in zip(factors, bounds, strict=True))
        if abs(change) > most:
            raise WrongResultError(
                f"{name} has changed by {change:.3g} in {steps} timed steps; roundings change it by at most {most:.3g}"
            )


def _conserved(case: Case, walls: Walls) -> dict[str, tuple[int, ...]]:
    """Return the factors of f_i in each sum that every step conserves, by name.

    Walls conserve the mass if none of them moves across itself. Solid cells that hold populations for a step do
    not, nor does interpolation.
    """
    velocities, sums_of = case.stencil.velocities, dict[str, tuple[int, ...]]()
    across = any(face == "moving" and case.wall_velocity[n // 2] for n, face in enumerate(case.faces))
    if not (across or case.patches or walls is not Walls.HALF_WAY or any(face in LOCAL for face in case.faces)):
        sums_of["mass"] = (1,) * len(velocities)
    if not (case.walled or case.geometry or case.forced):
        sums_of |= {f"momentum along {a}": tuple(c[n] for c in velocities) for n, a in enumerate("xyz")}
    return sums_of
