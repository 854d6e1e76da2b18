"""Verify compiled programs against the oracle before they are timed."""

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from itertools import accumulate, starmap
from math import ceil
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.boundaries.cut_links import Window, solid_in, whole
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import MACROSCOPICS, Program
from lbmtune.lattice import Vector
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import map_slabs, reference_slabs, small_states, whole_state
from lbmtune.measure.verification.textbook_boundaries import bounded
from lbmtune.records import Verification
from lbmtune.runtime import Simulation
from lbmtune.runtime.moments import moved_by_moments
from lbmtune.runtime.states import State

STORED_ROUNDINGS, COMPUTED_ROUNDINGS = 2.0, 6.0
"""C of the bound: roundings of the largest deviation per step, of storing and of computing."""
_BOTH_KINDS = "blocks:fraction=0.3"
"""Solid cells on small domains in place of a part of a voxel file that has cells of one kind alone."""
_ORACLE_ROUNDINGS, _ORACLE_EPSILON = 8.0, 2.0**-53


@singledispatch
def verify(program: Program, binary: Binary, device: Device, periods: int = 3) -> Verification:
    """Run 1..periods periods from a random non-equilibrium state and compare every population with the oracle."""
    program = short_chunks(_with_both_kinds(program))
    case, domains = program.case, [program.config.awkward_domain(program.case)]
    others = program.config.extra_domains(case)
    found = [compare(program, binary, device, replace(case, domain=domains[0]), periods)]
    if found[0].passed:
        domains += others
        found += [compare(program, binary, device, replace(case, domain=other), 1) for other in domains[1:]]
    return replace(_worst(found), domains=tuple(domains))


@singledispatch
def verify_simulation(simulation: Simulation) -> Verification:
    """Verify a simulation on every cell of its domain, slab by slab: index overflow shows only at full size.

    It takes as many steps as parities and buffer swaps need; persistent launches take twice as many, so that blocks
    overwrite what others have read.
    """
    case, xp, steps = simulation.case, simulation.xp, simulation.parity_steps * (1 + simulation.program.persistent)
    bounds, walls = error_bounds(case, simulation.program.config, steps), simulation.walls
    known = whole_state(case, steps, walls=walls) if xp is np else None
    left = steps if known is None else 0

    def begin(parts: Sequence[Window]) -> list[Verification]:
        for part, state in zip(parts, reference_slabs(case, parts, 0, xp), strict=True):
            simulation.initialise(state, part)
        return []

    def judge(parts: Sequence[Window]) -> list[Verification]:
        after = reference_slabs(case, parts, left, xp, walls=walls, start=known)
        found = [_deviation(simulation, state, steps, bounds, part) for part, state in zip(parts, after, strict=True)]
        if simulation.outputs:
            before = reference_slabs(case, parts, steps - 1, xp, walls=walls)
            found += [
                _macroscopic_deviation(simulation, state, steps, part)
                for part, state in zip(parts, before, strict=True)
            ]
        return found

    map_slabs(begin, case, xp, thin=True)
    simulation.step(steps)
    return replace(_worst(map_slabs(judge, case, xp, thin=not left)), full_size=True)


def verify_single(
    program: Program, binary: Binary, device: Device, single: tuple[Program, Binary], case: Case | None = None
) -> Verification:
    """Verify a kernel of one step in turn with that of several, each on the state of the other, in both buffers.

    case: with the domain to do it on; None: the awkward one, with a grid of short chunks.
    """
    if case is None:
        program = short_chunks(_with_both_kinds(program))
        case = replace(program.case, domain=program.config.awkward_domain(program.case))
        single = short_chunks(replace(single[0], case=program.case)), single[1]
    return _compare(Simulation(program, binary, device, case, lambda: single), (1, program.steps, 1))


def single_proof(program: Program, binary: Binary, single: Binary) -> Hashable:
    """Return all that `verify_single` depends on without a case, besides the device."""
    small = short_chunks(_with_both_kinds(program))
    case = replace(small.case, domain=small.config.awkward_domain(small.case))
    return binary.digest, single.digest, small.period, small.steps, case


def describe_failure(found: Verification) -> str:
    """Describe a failed verification in a sentence."""
    if found.where:
        return found.where
    cell = ", ".join(map(str, found.worst_cell))
    domain = "x".join(map(str, found.domains[-1]))
    where = f"f_{found.worst_direction} at cell ({cell}) of {domain}"
    if found.error >= sys.float_info.max:
        return f"{where} is not a finite number after {found.worst_steps} steps"
    return f"{where} is off by {found.error:.3g} after {found.worst_steps} steps; the bound is {found.bound:.3g}"


def compare(program: Program, binary: Binary, device: Device, case: Case, periods: int) -> Verification:
    """Return the worst deviation from the oracle, relative to its bound, over the periods."""
    return _compare(Simulation(program, binary, device, case), _comparison_steps(program, periods))


def _compare(simulation: Simulation, at_once: Sequence[int]) -> Verification:
    """Return the worst deviation relative to its bound; compared after each of these numbers of steps."""
    case, program = simulation.case, simulation.program
    compared = tuple(accumulate(at_once))
    before = tuple(steps - 1 for steps in compared) if simulation.outputs else ()
    wanted = tuple(sorted({0, *compared, *before}))
    # on the host: on so few cells each operation takes longer on a GPU than the steps that are checked
    states = dict(zip(wanted, small_states(case, wanted, simulation.walls), strict=True))
    simulation.initialise(states[0], on_host=True)

    def found(taken: int, steps: int) -> Verification:
        simulation.step(taken)
        bounds, part = error_bounds(case, program.config, steps), whole(case.domain)
        state = _deviation(simulation, states[steps], steps, bounds, part, on_host=True)
        if not simulation.outputs:
            return state
        return _worst([state, _macroscopic_deviation(simulation, states[steps - 1], steps, part, on_host=True)])

    return worst_of(starmap(found, zip(at_once, compared, strict=True)))


def _comparison_steps(program: Program, periods: int) -> tuple[int, ...]:
    """Return the steps between comparisons: a period each; 1, 2, 3 ... periods if launches take any number of steps."""
    # after each launch of several steps, or after all parities of single steps
    period = program.steps if program.steps > 1 else program.config.propagation.period
    return tuple(period * (n + 1 if program.persistent else 1) for n in range(periods))


def error_bounds(case: Case, config: KernelConfig, steps: int) -> tuple[float, ...]:
    """Return the largest allowed deviation of each population from the oracle after some steps.

    Storage and arithmetic round shifted values, up to the initial noise and what moving walls and faces add; the oracle
    rounds unshifted ones, of order one, in float64. Moments are rounded when a state is set and when a launch ends, all
    those of a cell at once (`rounding_bounds`).
    """
    heaviest = float(max(case.stencil.weights))
    given = [*case.wall_velocity, *case.inlet_velocity, case.outlet_density - 1]
    given += [value for patch in case.patches for value in (*patch.velocity, patch.density - 1)]
    scale = heaviest * oracle.NOISE + 6 * float(case.stencil.weights[1]) * max(map(abs, given))
    return rounding_bounds(case, config, steps, scale, _reached(case))


def rounding_bounds(
    case: Case, config: KernelConfig, steps: int, scale: float, reached: Sequence[float]
) -> tuple[float, ...]:
    """Return the bounds of `error_bounds` for states with given deviations from the weights.

    scale: the largest deviation of all; reached: d_j, the largest of each direction. If all moments of a cell are
    rounded at once, M_n = sum_j c_j^n d_j is rounded by at most epsilon |M_n|, and f_i = w_i + sum_n a_in M_n is what
    is seen of it (`runtime.moments`), so f_i moves by at most epsilon sum_n |a_in| sum_j |c_j^n| d_j. Without moving
    faces that is 4 (rest and axes) or 6 epsilon w_i NOISE of D3Q19: a rest population moves four times as far as if it
    were rounded by itself, a diagonal one, of a twelfth of that weight, half as far as that.
    """
    beside = 0.0 if config.stored.shifted else float(max(case.stencil.weights))
    stored = [steps * STORED_ROUNDINGS * (scale + beside)] * case.stencil.q
    if config.kept.name == "moments":
        moved = moved_by_moments(reached, case.stencil)
        stored = [(1 + ceil(steps / config.fused_steps)) * most for most in moved]
    by_steps = steps * (COMPUTED_ROUNDINGS * config.computed.epsilon * scale + _ORACLE_ROUNDINGS * _ORACLE_EPSILON)
    return tuple(config.stored.epsilon * size + by_steps for size in stored)


def error_bound(case: Case, config: KernelConfig, steps: int) -> float:
    """Return the largest bound of all populations."""
    return max(error_bounds(case, config, steps))


def _reached(case: Case) -> list[float]:
    """Return the largest deviation of each population from its weight: w_j NOISE plus what moving faces add."""
    return [
        float(w) * (oracle.NOISE + 6 * _driven(case, c))
        for w, c in zip(case.stencil.weights, case.stencil.velocities, strict=True)
    ]


def _driven(case: Case, c: Vector) -> float:
    """Return |c.u| of a moving face from which a population of that direction may come; 0 if there is none."""
    moving = any(case.faces[2 * axis + (c[axis] < 0)] == "moving" for axis in range(3) if c[axis])
    return abs(sum(a * b for a, b in zip(c, case.wall_velocity, strict=True))) if moving else 0.0


def _deviation(
    simulation: Simulation, expected: Any, steps: int, bounds: Sequence[float], part: Window, *, on_host: bool = False
) -> Verification:
    """Return the worst population of the fluid cells of a part, relative to the bound of its direction."""
    kept = simulation.kept_on_host if on_host else simulation.kept
    return deviation(kept, simulation.population_blocks(part, on_host=on_host), expected, steps, bounds, part)


def deviation(
    kept: State, blocks: Iterable[Any], expected: Any, steps: int, bounds: Sequence[float], part: Window
) -> Verification:
    """Return the worst population of the fluid cells of a part, relative to the bound of its direction.

    blocks: the populations of the part in order, some directions at a time.
    """
    xp, case = kept.xp, kept.case
    worst, first = (-1.0, -1.0, 0, 0), 0
    expected = kept.seen(expected)
    fluid = ~solid_in(case, part, xp) if case.geometry else None
    for found in blocks:
        difference = _difference(found, expected[first : first + len(found)], xp)
        if fluid is not None:
            difference *= fluid
        cells = difference.reshape(len(found), -1)
        for i, cell in enumerate(cells.argmax(axis=1).tolist(), start=first):
            error = float(cells[i - first, cell])
            if error / bounds[i] > worst[0]:
                worst = error / bounds[i], error, i, cell
        first += len(found)
    _, error, direction, cell = worst
    z, y, x = (int(n) for n in np.unravel_index(cell, difference.shape[1:]))
    return Verification(
        error=error,
        bound=bounds[direction],
        worst_cell=(part[0][x], part[1][y], part[2][z]),
        worst_direction=direction,
        worst_steps=steps,
        domains=(case.domain,),
    )


def _macroscopic_deviation(
    simulation: Simulation, before: Any, steps: int, part: Window, *, on_host: bool = False
) -> Verification:
    """Return the worst density or velocity that the last step wrote, numbered after the populations.

    Each is a sum of all populations, which may deviate by their bounds, rounded beside a density of one.
    """
    case, config, xp = simulation.case, simulation.program.config, np if on_host else simulation.xp
    x, y, z = (slice(r.start, r.stop) for r in part)
    nx, ny, nz = case.domain
    found = simulation.outputs[MACROSCOPICS].reshape(-1, nz, ny, nx)[:, z, y, x]
    found = (simulation.xp.asnumpy(found) if xp is not simulation.xp else found).astype(xp.float64)
    before = bounded(before, case, xp, part)
    expected = xp.concatenate([oracle.density(before)[None], oracle.velocity(before, case, xp)])
    difference = _difference(found, expected, xp)
    field, k, j, i = (int(n) for n in np.unravel_index(int(difference.argmax()), difference.shape))
    return Verification(
        error=float(difference[field, k, j, i]),
        bound=case.stencil.q * (error_bound(case, config, steps) + config.computed.epsilon),
        worst_cell=(part[0][i], part[1][j], part[2][k]),
        worst_direction=case.stencil.q + field,
        worst_steps=steps,
        domains=(case.domain,),
    )


def _difference(found: Any, expected: Any, xp: ModuleType) -> Any:
    """Return |found - expected|; values that are not finite become the largest number."""
    difference = found - expected
    xp.abs(difference, out=difference)
    if xp is np and np.isfinite(difference.max()):
        return difference  # the search for non-finite values would take as long as all the rest
    return xp.nan_to_num(difference, copy=False, nan=sys.float_info.max, posinf=sys.float_info.max)


def worst_of(found: Iterable[Verification]) -> Verification:
    """Return the first deviation beyond its bound, after which none is asked for, or the largest relative one."""
    passed = list[Verification]()
    for one in found:
        if not one.passed:
            return one
        passed.append(one)
    return _worst(passed)


def _worst(found: Sequence[Verification]) -> Verification:
    return max(found, key=lambda one: one.error / one.bound)


def _with_both_kinds(program: Program) -> Program:
    """Return the program with random solid cells if a voxel file has no fluid or no solid cell on a small domain.

    Samples often begin with a frame, on which every kernel is right.
    """
    case, config = program.case, program.config
    if not case.geometry.startswith("file:") or case.patches:
        return program
    domains = [config.awkward_domain(case), *config.extra_domains(case)]
    solid = (solid_in(replace(case, domain=domain), whole(domain)) for domain in domains)
    if all(0 < np.count_nonzero(cells) < cells.size for cells in solid):
        return program
    return replace(program, case=replace(case, geometry=_BOTH_KINDS))


def short_chunks(program: Program) -> Program:
    """Return the program with a grid of short chunks, if their length is set by the grid alone.

    The oracle's time grows with the planes, and what happens at the ends of chunks does not depend on their length.
    """
    covers = program.config.short_block(program.case)
    if covers is None:
        return program
    period = tuple(tuple(replace(launch, covers=covers) for launch in step) for step in program.period)
    return replace(program, period=period)
