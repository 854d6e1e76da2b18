"""Run flows with CPU kernels, for tests against known solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from lbmtune.backend.cpu import compile_cpu, open_cpu
from lbmtune.backend.protocol import Binary, Device
from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification import oracle
from lbmtune.runtime import Simulation

FP64 = cpu.Direct(compute="fp64", storage="fp64")


def viscosity(case: Case) -> float:
    """Return the kinematic viscosity in lattice units."""
    return (1 / case.relaxation_rate - 0.5) / 3


def relaxation_rate(viscosity_: float) -> float:
    """Return the relaxation rate of a kinematic viscosity."""
    return 1 / (3 * viscosity_ + 0.5)


def start(case: Case, config: CpuConfig, velocity: Sequence[Any] = (0.0, 0.0, 0.0), density: Any = 1.0) -> Simulation:
    """Create a simulation at equilibrium. velocity: three values or (nz, ny, nx) arrays; density: one of either."""
    config = replace(config, vector_bits=min(256, _device().limits.vector_bits))
    program, binary = _compiled(_without_extents(case), config)
    simulation = Simulation(program, binary, _device(), case)
    rho, *u = (np.broadcast_to(field, case.domain[::-1]) for field in (density, *velocity))
    simulation.initialise(oracle.equilibrium(rho, np.stack(u), case.stencil))
    return simulation


def _without_extents(case: Case) -> Case:
    """Return the case shared by all that differ only in launch arguments."""
    flat = case.stencil.dimensions == 2
    return replace(case, domain=(64, 8, 1 if flat else 8), relaxation_rate=1.0, magic=3 / 16)


@cache
def _compiled(case: Case, config: CpuConfig) -> tuple[Program, Binary]:
    program = render(case, config)
    return program, compile_cpu(program)


@cache
def _device() -> Device:
    return open_cpu()
