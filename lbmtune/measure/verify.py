"""Proof before timing: the compiled program against the oracle, on awkward extents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from math import lcm
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig
from lbmtune.codegen.program import Program
from lbmtune.measure import oracle
from lbmtune.records import Verification
from lbmtune.runtime import Simulation

ROUNDINGS = 8.0
"""C of the bound: roundings of the largest deviation that one step may add up to."""
_ORACLE_EPSILON = 2.0**-53


def verify(program: Program, binary: Binary, device: Device, periods: int = 3) -> Verification:
    """Runs 1..periods periods from a random non-equilibrium state and compares every population with the oracle."""
    case = replace(program.case, domain=awkward_domain(program.case, program.config))
    return compare(program, binary, device, case, periods)


def verify_full_size(program: Program, binary: Binary, device: Device, periods: int = 1) -> Verification:
    """The same on the case's own domain, with the oracle on the device: index overflow shows only here."""
    return replace(compare(program, binary, device, program.case, periods), full_size=True)


def compare(program: Program, binary: Binary, device: Device, case: Case, periods: int) -> Verification:
    """Worst deviation from the oracle, relative to its bound, over the periods."""
    simulation = Simulation(program, binary, device, case)
    period = program.config.propagation.period
    states = _oracle_states(case, periods * period, device)
    start = next(states)
    simulation.initialise(start)
    scale = float(abs(start - _weights(case, device)).max())
    worst: Verification | None = None
    for steps, expected in enumerate(states, 1):
        simulation.step(1)
        if steps % period:
            continue
        found = _deviation(simulation, expected, steps, error_bound(program.config, scale, steps))
        if worst is None or not found.passed or found.error / found.bound > worst.error / worst.bound:
            worst = found
        if not found.passed:
            break
    assert worst is not None
    return worst


def error_bound(config: KernelConfig, scale: float, steps: int) -> float:
    """Largest deviation allowed after some steps, for populations whose shifted values reach `scale`.

    Storage and arithmetic round shifted values; the oracle rounds unshifted ones, of order one, in float64.
    """
    epsilon = max(config.stored.epsilon, config.computed.epsilon)
    return ROUNDINGS * steps * (epsilon * scale + _ORACLE_EPSILON)


def awkward_domain(case: Case, config: KernelConfig) -> tuple[int, int, int]:
    """Extents that all differ: x a multiple of what the kernel needs but not of a block, y and z odd."""
    flat = case.stencil.dimensions == 2
    if isinstance(config, CudaConfig):
        unit = lcm(config.cells_per_thread, max(config.memory.run, 1))
        nx = config.block[0] * config.cells_per_thread + unit
        ny, nz = (2 * (extent // 2) + 3 for extent in config.block[1:])
    else:
        assert isinstance(config, CpuConfig)
        lanes = config.vector_bits // (8 * config.computed.bytes) if config.vector_bits else 1
        nx = 3 * lcm(lanes, max(config.memory.run, 1), 4)
        ny, nz = 2 * (config.tile_y // 2) + 5, 2 * (config.tile_z // 2) + 3
    nx = -(-nx // unit) * unit if isinstance(config, CudaConfig) else nx
    nz += 2 * (ny == nz)
    return (nx, ny, 1 if flat else nz)


def _deviation(simulation: Simulation, expected: Any, steps: int, bound: float) -> Verification:
    xp, case = simulation.xp, simulation.case
    error, cell, direction = -1.0, (0, 0, 0), 0
    for i, f in enumerate(simulation.each_population()):
        difference = abs(f - expected[i])
        difference = xp.where(xp.isnan(difference), xp.inf, difference)
        flat = int(difference.argmax())
        if float(difference.reshape(-1)[flat]) > error:
            error, direction = float(difference.reshape(-1)[flat]), i
            z, y, x = np.unravel_index(flat, case.domain[::-1])
            cell = (int(x), int(y), int(z))
    return Verification(
        error=error, bound=bound, worst_cell=cell, worst_direction=direction, worst_steps=steps, domains=(case.domain,)
    )


def _oracle_states(case: Case, steps: int, device: Device) -> Iterator[Any]:
    """The state at 0, 1, ... steps, in the device's array module; small ones are remembered."""
    if case.sites <= 100_000:
        yield from (device.xp.asarray(state) for state in _remembered(case, steps))
        return
    state = oracle.random_state(case, xp=device.xp)
    yield state
    for _ in range(steps):
        state = oracle.step(state, case, device.xp)
        yield state


@lru_cache(maxsize=32)
def _remembered(case: Case, steps: int) -> tuple[Any, ...]:
    states = [oracle.random_state(case)]
    for _ in range(steps):
        states.append(oracle.step(states[-1], case))
    return tuple(states)


def _weights(case: Case, device: Device) -> Any:
    return device.xp.asarray([float(w) for w in case.stencil.weights]).reshape(-1, 1, 1, 1)
