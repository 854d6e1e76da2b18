"""What storing populations in fewer bits costs in accuracy: a decaying Taylor-Green vortex against one in float64.

Source: de Oliveira et al. 2019, section 5.2 (eq. 11 with its square root, eq. 13), with a constant number of cells:
the viscosity falls with the velocity, so that every run ends at the same physical time and Reynolds number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from math import lcm
from types import ModuleType
from typing import Any

from lbmtune.backend.protocol import Binary, Compiler, Device
from lbmtune.catalogue.config import CpuConfig, CudaConfig, KernelConfig, cpu, cuda
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.records import Accuracy, AccuracyPoint
from lbmtune.runtime import Simulation
from lbmtune.runtime.solver import equilibrium

Array = Any
VELOCITIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
"""Peak velocities, in lattice units."""
_VISCOSITY_PER_VELOCITY = 1.0
AFTER_STEPS, _AFTER_VELOCITY, _AFTER_VISCOSITY = 1000, 0.05, 0.02
"""The run of many steps, in which roundings add up."""
_EDGE = {"cpu": 32, "cuda": 64}
"""Cells along x and y at least, so that a CPU takes seconds; along z the flow does not vary."""
_DEPTH = 4
"""Planes at least; as many as a tile of the layout or a block has."""

Flow = tuple[Array, Array]
"""Density (nz, ny, nx) and velocity (3, nz, ny, nx)."""


def measure_accuracy(
    case: Case,
    config: KernelConfig,
    device: Device,
    compiler: Compiler,
    forget: Callable[[], None] = lambda: None,
    *,
    brief: bool = False,
) -> Accuracy:
    """L2 errors of density and velocity over the peak velocity, with the lattice and collision of the case.

    brief: after many steps alone. forget: called before each run, so that its arrays may take the place of those
    before it. Raises CompileError, TooManyResourcesError, OutOfMemoryError.
    """
    box, config = fitted(case, config)
    pairs = [_compiled(box, one, compiler) for one in (config, reference_of(config))]

    def point(flow: Case, steps: int) -> AccuracyPoint:
        forget()
        steps = -(-steps // pairs[0][0].steps) * pairs[0][0].steps
        found, reference = (_run(pair, flow, steps, device) for pair in pairs)
        return _point(flow, steps, found, reference, device.xp)

    points = () if brief else tuple(point(*vortex_case(box, velocity)) for velocity in VELOCITIES)
    rate = 1.0 / (3.0 * _AFTER_VISCOSITY + 0.5)
    return Accuracy(
        lattice=case.lattice,
        collision=case.collision,
        storage=config.storage,
        compute=config.compute,
        domain=box.domain,
        points=points,
        after=point(replace(box, velocity_scale=_AFTER_VELOCITY, relaxation_rate=rate), AFTER_STEPS),
        representation=config.kept.name,
        steps=config.fused_steps,
    )


def reference_of(config: KernelConfig) -> KernelConfig:
    """A plain kernel of the same backend in float64."""
    if isinstance(config, CudaConfig):
        return cuda.Direct(storage="fp64", compute="fp64", block=(64, 1, 1))
    assert isinstance(config, CpuConfig)
    return cpu.Direct(storage="fp64", compute="fp64", vector_bits=0, threads=config.threads)


def vortex_case(box: Case, velocity: float) -> tuple[Case, int]:
    """The box with that peak velocity and a viscosity to match, and the steps to a quarter of an eddy's turn."""
    viscosity = _VISCOSITY_PER_VELOCITY * velocity
    rate = 1.0 / (3.0 * viscosity + 0.5)
    return replace(box, velocity_scale=velocity, relaxation_rate=rate), round(box.domain[0] / (4.0 * velocity))


def vortex(case: Case, steps: int, xp: ModuleType) -> Flow:
    """The analytical solution after some steps; it does not depend on z. Source: de Oliveira et al. 2019, eq. 13."""
    nx, ny, nz = case.domain
    wave, viscosity = 2 * math.pi / nx, (1.0 / case.relaxation_rate - 0.5) / 3.0
    decay = math.exp(-2.0 * viscosity * wave**2 * steps)
    x, y = wave * xp.arange(nx, dtype=xp.float64), wave * xp.arange(ny, dtype=xp.float64)[:, None]
    speed, shape = case.velocity_scale, (nz, ny, nx)
    velocity = xp.zeros((3, *shape))
    velocity[0] = -speed * decay * xp.cos(x) * xp.sin(y)
    velocity[1] = speed * decay * xp.sin(x) * xp.cos(y)
    density = 1.0 - 0.75 * (speed * decay) ** 2 * (xp.cos(2 * x) + xp.cos(2 * y))
    return xp.broadcast_to(density, shape), velocity


def l2_error(found: Array, expected: Array) -> float | None:
    """The norm of the difference over that of what is expected; None where it is no finite number."""
    value = math.sqrt(float(((found - expected) ** 2).sum()) / float((expected**2).sum()))
    return value if math.isfinite(value) else None


def fitted(case: Case, config: KernelConfig) -> tuple[Case, KernelConfig]:
    """The box of the vortex, and the kernel on it: chunks and blocks no longer than the box, no flags without walls.

    None of that changes how a kernel rounds. Where the rules refuse the pair, the kernel must not be run on the box.
    """
    box = _box(case, config)
    config = replace(config, flags="compiled")
    if isinstance(config, CudaConfig):
        march = min(config.march, box.domain[box.stencil.dimensions - 1])
        boundary = "branch" if config.boundary == "predicated" else config.boundary
        config = replace(config, march=march, boundary=boundary, held=0)
        if not (config.marches or config.resident):
            x, y, z = config.block
            config = replace(config, block=(min(x, box.domain[0] // config.cells_per_thread), y, z))
    return box, config


def _box(case: Case, config: KernelConfig) -> Case:
    """A square periodic box with rows that suit the kernel."""
    if isinstance(config, CudaConfig):
        together = config.cells_per_thread
    else:
        assert isinstance(config, CpuConfig)
        together = config.vector_bits // (8 * config.computed.bytes) or 1
    unit = lcm(together, max(config.memory.run, 1))
    edge = -(-_EDGE[config.backend] // unit) * unit
    if isinstance(config, CudaConfig) and config.resident:
        edge = config.block[0] * config.cells_per_thread  # its tiles are whole rows
    block = config.block if isinstance(config, CudaConfig) else (1, 1, 1)
    depth = 1 if case.stencil.dimensions == 2 else max(_DEPTH, config.layout_tile[2], block[2])
    return Case("box", case.lattice, case.collision, (edge, edge, depth), 1.0, magic=case.magic)


def _compiled(box: Case, config: KernelConfig, compiler: Compiler) -> tuple[Program, Binary]:
    program = render(box, config)
    return program, compiler(program)


def _run(pair: tuple[Program, Binary], case: Case, steps: int, device: Device) -> Flow:
    simulation = Simulation(*pair, device, case)
    simulation.initialise(equilibrium(*vortex(case, 0, device.xp), case.stencil, device.xp))
    simulation.step(steps)
    return simulation.macroscopic()


def _point(case: Case, steps: int, found: Flow, reference: Flow, xp: ModuleType) -> AccuracyPoint:
    exact = vortex(case, steps, xp)
    return AccuracyPoint(
        velocity_scale=case.velocity_scale,
        relaxation_rate=case.relaxation_rate,
        steps=steps,
        density=l2_error(found[0], reference[0]),
        velocity=l2_error(found[1], reference[1]),
        density_to_exact=l2_error(found[0], exact[0]),
        velocity_to_exact=l2_error(found[1], exact[1]),
        reference_density_to_exact=l2_error(reference[0], exact[0]),
        reference_velocity_to_exact=l2_error(reference[1], exact[1]),
    )
