"""Proof before timing: the compiled program against the oracle, on awkward extents."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import ceil, lcm
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.boundaries.cut_links import Window, solid_in, whole
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.catalogue.families.cuda.persistent import planes_less
from lbmtune.catalogue.families.cuda.temporal_blocking import block_cells, ends, piece_cells
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import MACROSCOPICS, Program
from lbmtune.lattice import Vector
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import by_shares, expected_slabs, small_states, whole_state
from lbmtune.measure.verification.textbook_boundaries import bounded
from lbmtune.records import Verification
from lbmtune.runtime import Simulation
from lbmtune.runtime.moments import moved_by_moments

STORED_ROUNDINGS, COMPUTED_ROUNDINGS = 2.0, 6.0
"""C of the bound: roundings of the largest deviation that one step may add up to, on storing and on computing."""
_ORACLE_ROUNDINGS, _ORACLE_EPSILON = 8.0, 2.0**-53
_CHUNK = 8
"""Planes of a chunk on small domains, at most; twice the steps of a launch where those are more."""
_FAR = 2
"""Cells ahead from which on more than one is on its way."""
_SLABS, _THIN = 3, 3
"""Threads that work side by side on a small domain; rows of one that is too thin for them."""


def verify(program: Program, binary: Binary, device: Device, periods: int = 3) -> Verification:
    """Runs 1..periods periods from a random non-equilibrium state and compares every population with the oracle."""
    case, domains = program.case, [awkward_domain(program.case, program.config)]
    others = filter(None, (ring_domain(case, program.config), tail_domain(case, program.config)))
    program = _shortened(program)
    found = [compare(program, binary, device, replace(case, domain=domains[0]), periods)]
    if found[0].passed:
        domains += others
        found += [compare(program, binary, device, replace(case, domain=other), 1) for other in domains[1:]]
    return replace(_worst(found), domains=tuple(domains))


def verify_full_size(program: Program, binary: Binary, device: Device) -> Verification:
    """The same on every cell of the case's own domain: index overflow shows only here."""
    return verify_simulation(Simulation(program, binary, device))


def verify_simulation(simulation: Simulation) -> Verification:
    """A simulation against the oracle on every cell of its domain, part by part.

    It takes so many steps that each parity and exchange of the buffers occurs; where a launch lasts, twice as many,
    so that blocks write anew what others have read.
    """
    case, xp, steps = simulation.case, simulation.xp, simulation.parity_steps * (1 + simulation.program.persistent)
    bounds, implicit = error_bounds(case, simulation.program.config, steps), simulation.program.config.implicit
    known = whole_state(case, steps, implicit=implicit) if xp is np else None
    left = steps if known is None else 0

    def begin(parts: Sequence[Window]) -> list[Verification]:
        for part, state in zip(parts, expected_slabs(case, parts, 0, xp), strict=True):
            simulation.initialise(state, part)
        return []

    def judge(parts: Sequence[Window]) -> list[Verification]:
        after = expected_slabs(case, parts, left, xp, implicit=implicit, start=known)
        found = [_deviation(simulation, state, steps, bounds, part) for part, state in zip(parts, after, strict=True)]
        if simulation.outputs:
            before = expected_slabs(case, parts, steps - 1, xp)
            found += [_written(simulation, state, steps, part) for part, state in zip(parts, before, strict=True)]
        return found

    by_shares(begin, case, xp, thin=True)
    simulation.step(steps)
    return replace(_worst(by_shares(judge, case, xp, thin=not left)), full_size=True)


def verify_single(program: Program, binary: Binary, device: Device, single: tuple[Program, Binary]) -> Verification:
    """A kernel of one step in turn with that of several: each works on what the other one left, in both buffers."""
    case = replace(program.case, domain=awkward_domain(program.case, program.config))
    one = _shortened(single[0]), single[1]
    return _compared(Simulation(_shortened(program), binary, device, case, lambda: one), (1, program.steps, 1))


def describe_failure(found: Verification) -> str:
    """Describe a failed verification in a sentence."""
    cell = ", ".join(map(str, found.worst_cell))
    domain = "x".join(map(str, found.domains[-1]))
    where = f"f_{found.worst_direction} at cell ({cell}) of {domain}"
    if found.error >= sys.float_info.max:
        return f"{where} is not a finite number after {found.worst_steps} steps"
    return f"{where} is off by {found.error:.3g} after {found.worst_steps} steps; the bound is {found.bound:.3g}"


def compare(program: Program, binary: Binary, device: Device, case: Case, periods: int) -> Verification:
    """Worst deviation from the oracle, relative to its bound, over the periods."""
    return _compared(Simulation(program, binary, device, case), _steps_at_once(program, periods))


def _compared(simulation: Simulation, at_once: Sequence[int]) -> Verification:
    """Worst deviation, relative to its bound, each time that so many steps were taken."""
    case, program = simulation.case, simulation.program
    compared = tuple(accumulate(at_once))
    before = tuple(steps - 1 for steps in compared) if simulation.outputs else ()
    wanted = tuple(sorted({0, *compared, *before}))
    states = dict(zip(wanted, small_states(case, wanted, simulation.xp, program.config.implicit), strict=True))
    simulation.initialise(states[0])
    worst: Verification | None = None
    for taken, steps in zip(at_once, compared, strict=True):
        simulation.step(taken)
        bounds = error_bounds(case, program.config, steps)
        found = _deviation(simulation, states[steps], steps, bounds, whole(case.domain))
        if simulation.outputs:
            found = _worst([found, _written(simulation, states[steps - 1], steps, whole(case.domain))])
        if worst is None or not found.passed or found.error / found.bound > worst.error / worst.bound:
            worst = found
        if not found.passed:
            break
    assert worst is not None
    return worst


def _steps_at_once(program: Program, periods: int) -> tuple[int, ...]:
    """Steps between comparisons: a period each; 1, 2, 3 ... where a launch does as many as it is asked for."""
    # after each launch of several steps; of those of one, after all parities
    period = program.steps if program.steps > 1 else program.config.propagation.period
    return tuple(period * (n + 1 if program.persistent else 1) for n in range(periods))


def error_bounds(case: Case, config: KernelConfig, steps: int) -> tuple[float, ...]:
    """Largest deviation of each population from the oracle allowed after some steps.

    Storage and arithmetic round shifted values, which reach the noise of the start and what moving walls and faces add;
    the oracle rounds unshifted ones, of order one, in float64. Moments are rounded when a state is given and when a
    launch has ended, and as many at once as a cell keeps (`_moved`).
    """
    heaviest = float(max(case.stencil.weights))
    given = [*case.wall_velocity, *case.inlet_velocity, case.outlet_density - 1]
    given += [value for patch in case.patches for value in (*patch.velocity, patch.density - 1)]
    scale = heaviest * oracle.NOISE + 6 * float(case.stencil.weights[1]) * max(map(abs, given))
    stored = [steps * STORED_ROUNDINGS * scale] * case.stencil.q
    if config.kept.name == "moments":
        stored = [(1 + ceil(steps / config.fused_steps)) * moved for moved in _moved(case)]
    by_steps = steps * (COMPUTED_ROUNDINGS * config.computed.epsilon * scale + _ORACLE_ROUNDINGS * _ORACLE_EPSILON)
    return tuple(config.stored.epsilon * size + by_steps for size in stored)


def error_bound(case: Case, config: KernelConfig, steps: int) -> float:
    """The largest of them."""
    return max(error_bounds(case, config, steps))


def _moved(case: Case) -> list[float]:
    """How far each population moves where all moments of a cell are rounded at once, over the unit round-off.

    A shifted population reaches d_j = w_j NOISE, and what moving faces add. M_n = sum_j c_j^n d_j is rounded by at most
    epsilon |M_n|, and f_i = w_i + sum_n a_in M_n is what is seen of it (`runtime.moments`), so f_i moves by at most
    epsilon sum_n |a_in| sum_j |c_j^n| d_j. Without such faces that is 4 (rest and axes) or 6 epsilon w_i NOISE of
    D3Q19: a rest population moves four times as far as if it were rounded by itself, a diagonal one, of a twelfth of
    that weight, half as far as that.
    """
    reached = [
        float(w) * (oracle.NOISE + 6 * _driven(case, c))
        for w, c in zip(case.stencil.weights, case.stencil.velocities, strict=True)
    ]
    return moved_by_moments(reached, case.stencil)


def _driven(case: Case, c: Vector) -> float:
    """|c.u| of what comes back from a face that moves, where a population of that direction may come from one."""
    moving = any(case.faces[2 * axis + (c[axis] < 0)] == "moving" for axis in range(3) if c[axis])
    return abs(sum(a * b for a, b in zip(c, case.wall_velocity, strict=True))) if moving else 0.0


def with_short_chunks(config: CudaConfig) -> CudaConfig:
    """The configuration with chunks of a few planes, where their number is a matter of the grid and not of the binary.

    The oracle takes its time for every plane, and what happens where chunks meet does not depend on their length.
    """
    return replace(config, march=min(config.march, max(_CHUNK, 2 * config.steps))) if config.marches else config


def _shortened(program: Program) -> Program:
    """The program with a grid for short chunks; text and binary are the same."""
    if not isinstance(program.config, CudaConfig) or not program.config.marches:
        return program
    covers = block_cells(program.case.stencil, with_short_chunks(program.config))
    period = tuple(tuple(replace(launch, covers=covers) for launch in step) for step in program.period)
    return replace(program, period=period)


def awkward_domain(case: Case, config: KernelConfig) -> tuple[int, int, int]:
    """Extents that all differ: x a multiple of what the kernel needs but not of a block, y and z odd.

    Where threads go up columns, the last of them has one cell, unless cells are read far ahead (`tail_domain`).
    """
    flat = case.stencil.dimensions == 2
    if isinstance(config, CudaConfig) and config.resident:
        spared = planes_less(case.stencil, config)
        return _whole_tiles(*block_cells(case.stencil, config), flat=flat, spared=spared)
    if isinstance(config, CudaConfig):
        run = 1 if config.by_faces and config.layout.startswith("tiled") else config.memory.run
        unit = lcm(config.cells_per_thread, max(run, 1))
        unit = lcm(unit, piece_cells(case.stencil, config)) if config.in_bulk else unit
        along_x, along_y, along_z = block_cells(case.stencil, with_short_chunks(config))
        nx = along_x + unit
        if config.marches and (rest := ends(case, config)):
            # one tile at each of the faces across x, and one that reaches neither
            nx += along_x + rest
        ny, nz = (2 * (extent // 2) + 3 for extent in (along_y, along_z))
        if config.block_order != "row":
            # six blocks by four (two by six in two dimensions), which a curve takes in more than one square
            ny, nz = 5 * along_y + 1, 3 * along_z + 1
        elif _has_columns(config) and config.prefetch < _FAR:
            nz = _with_one_more(along_z)
            ny += 2 * (ny == nz)
    else:
        assert isinstance(config, CpuConfig)
        lanes = config.vector_bits // (8 * config.computed.bytes) if config.vector_bits else 1
        nx = (config.tile_x if config.of_moments else 0) + 3 * lcm(lanes, max(config.memory.run, 1), 4)
        ny, nz = (2 * (n // 2) + 3 for n in (config.tile_y + 2, config.tile_z))
        if config.steps > 1 and not config.of_moments:
            ny, nz = _of_regions(case, config, ny, nz)
    nx = -(-nx // unit) * unit if isinstance(config, CudaConfig) else nx
    nz += 2 * (ny == nz)
    return (nx, ny, 1 if flat else nz)


def tail_domain(case: Case, config: KernelConfig) -> tuple[int, int, int] | None:
    """A domain whose last columns have one cell, where cells are read far ahead.

    Those of `awkward_domain` have two or three there: sets of registers take turns, and shorter ones end otherwise.
    """
    far = isinstance(config, CudaConfig) and _has_columns(config) and config.prefetch >= _FAR
    if not far or case.stencil.dimensions == 2:
        return None
    assert isinstance(config, CudaConfig)
    nx, ny, nz = awkward_domain(case, config)
    one_more = _with_one_more(block_cells(case.stencil, config)[2])
    return (nx, ny + 2 * (ny == one_more), one_more) if nz != one_more else None


def _has_columns(config: CudaConfig) -> bool:
    """Whether threads go up columns of cells of the box."""
    return config.march > 1 and not (config.marches or config.resident or config.indirect)


def _with_one_more(along_z: int) -> int:
    """Whole blocks and a plane; three or more, so that neighbours differ."""
    return along_z + 1 if along_z > 2 else 2 * along_z + 1


def _of_regions(case: Case, config: CpuConfig, ny: int, nz: int) -> tuple[int, int]:
    """Rows and planes for regions that shrink from step to step and leave a core, side by side for a few threads."""
    gap, slabs = 2 * (config.steps - 1), min(config.threads, _SLABS)
    flat = case.stencil.dimensions == 2
    return ny + gap * (slabs if flat else 1), nz + gap * slabs


def _whole_tiles(along_x: int, along_y: int, along_z: int, *, flat: bool, spared: int) -> tuple[int, int, int]:
    """Of kernels that stay on chip: three by five tiles of a whole row, or more where extents would be equal.

    spared: planes that the highest tiles may have less than the others.
    """
    nx, ny, nz = along_x, 3 * along_y, along_z if flat else 5 * along_z - spared
    ny += along_y * (ny == nx)
    while not flat and nz in (nx, ny):
        nz += along_z
    return nx, ny, nz


def ring_domain(case: Case, config: KernelConfig) -> tuple[int, int, int] | None:
    """A domain whose rows fit into one warp, whose lanes then form a ring: another path through a CUDA kernel.

    The rows take three quarters of the warp, so that the ring closes at the last cell and not at the last lane. Of a
    CPU kernel of many steps, one that is too thin for all of them at once.
    """
    if isinstance(config, CpuConfig) and config.steps > _THIN // 2 + 1:
        return (awkward_domain(case, config)[0], _THIN, 1 if case.stencil.dimensions == 2 else _THIN + 2)
    if not isinstance(config, CudaConfig) or not config.kept.rings or config.cells_per_thread == 1:
        return None
    unit = lcm(config.cells_per_thread, max(config.memory.run, 1))
    rows = min(32, config.block[0]) * config.cells_per_thread // unit
    return (max(1, 3 * rows // 4) * unit, *awkward_domain(case, config)[1:]) if rows else None


def _deviation(
    simulation: Simulation, expected: Any, steps: int, bounds: Sequence[float], part: Window
) -> Verification:
    """The worst population of the fluid cells of a part: the one that comes closest to the bound of its direction."""
    xp, case = simulation.xp, simulation.case
    worst, first = (-1.0, -1.0, 0, 0), 0
    expected = simulation.kept.seen(expected)
    solid = solid_in(case, part, xp) if case.geometry else None
    for found in simulation.population_blocks(part):
        difference = _difference(found, expected[first : first + len(found)], xp)
        if solid is not None:
            difference[:, solid] = 0.0
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
        domains=(simulation.case.domain,),
    )


def _written(simulation: Simulation, before: Any, steps: int, part: Window) -> Verification:
    """The worst density or velocity that the last step left of the state before it, counted on from the populations.

    Each is a sum of all populations, of which each may deviate by its bound, rounded beside a density of one.
    """
    case, config, xp = simulation.case, simulation.program.config, simulation.xp
    x, y, z = (slice(r.start, r.stop) for r in part)
    nx, ny, nz = case.domain
    found = simulation.outputs[MACROSCOPICS].reshape(-1, nz, ny, nx)[:, z, y, x].astype(xp.float64)
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
    """|found - expected|; what is no finite number counts as the largest one."""
    difference = found - expected
    xp.abs(difference, out=difference)
    if xp is np and np.isfinite(difference.max()):
        return difference  # to look for what is not finite takes as long as all the rest
    return xp.nan_to_num(difference, copy=False, nan=sys.float_info.max, posinf=sys.float_info.max)


def _worst(found: Sequence[Verification]) -> Verification:
    """The one that comes closest to its bound, or goes furthest beyond it."""
    return max(found, key=lambda one: one.error / one.bound)
