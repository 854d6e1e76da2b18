"""Measure the rounding error of a kernel: a decaying Taylor-Green vortex against one in float64.

Source: de Oliveira et al. 2019, section 5.2 (eq. 11 with its square root, eq. 13), with a constant number of cells:
the viscosity scales with the velocity, so that every run ends at the same physical time and Reynolds number.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from types import ModuleType
from typing import Any

from lbmtune.backend.protocol import Binary, Compiler, Device
from lbmtune.catalogue.config import Block, KernelConfig, cpu, cuda
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
"""The run of many steps, in which roundings accumulate."""
_EDGE = {"cpu": 32, "cuda": 64}
"""Least cells along x and y, by backend: a CPU takes seconds; the flow does not vary along z."""
_DEPTH = 4
"""Least planes; tiles of the layout and thread blocks may have more."""

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
    """Return the L2 errors of density and velocity by peak velocity, with the lattice and collision of the case.

    brief: only the run of many steps; forget: called before each run to release the arrays of the last one.
    Raises CompileError, TooManyResourcesError, OutOfMemoryError.
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
    """Return a plain kernel of the same backend in float64."""
    return _REFERENCES[config.backend](config)


_REFERENCES: Mapping[str, Callable[[Any], KernelConfig]] = {
    "cuda": lambda _: cuda.Direct(storage="fp64", compute="fp64", block=(64, 1, 1)),
    "cpu": lambda config: cpu.Direct(storage="fp64", compute="fp64", vector_bits=0, threads=config.threads),
}


def vortex_case(box: Case, velocity: float) -> tuple[Case, int]:
    """Return the box with a peak velocity and a viscosity to match, and the steps of a quarter eddy turnover."""
    viscosity = _VISCOSITY_PER_VELOCITY * velocity
    rate = 1.0 / (3.0 * viscosity + 0.5)
    return replace(box, velocity_scale=velocity, relaxation_rate=rate), round(box.domain[0] / (4.0 * velocity))


def vortex(case: Case, steps: int, xp: ModuleType) -> Flow:
    """Return the exact solution after some steps. Source: de Oliveira et al. 2019, eq. 13."""
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


def initial_state(case: Case, xp: ModuleType) -> Array:
    """Return the populations of the vortex at time 0: equilibrium, and the part that its velocity gradients imply.

    Without the latter the error of the start, 6e-3 of the velocity, would hide that of single precision.
    Source: de Oliveira et al. 2019, section 5.2 ("regularization"); Kruger et al. 2017, eq. 4.35.
    """
    density, velocity = vortex(case, 0, xp)
    f = equilibrium(density, velocity, case.stencil, xp)
    nx, ny, _ = case.domain
    wave = 2 * math.pi / nx
    x, y = wave * xp.arange(nx, dtype=xp.float64), wave * xp.arange(ny, dtype=xp.float64)[:, None]
    stretch = case.velocity_scale * wave * xp.sin(x) * xp.sin(y)  # du_x/dx = -du_y/dy; du_x/dy = -du_y/dx
    for i, (c, w) in enumerate(zip(case.stencil.velocities, case.stencil.weights, strict=True)):
        f[i] -= float(3 * w) / case.relaxation_rate * density * (c[0] ** 2 - c[1] ** 2) * stretch
    return f


def l2_error(found: Array, expected: Array) -> float | None:
    """Return the relative L2 norm of a difference; None if it is not finite."""
    value = math.sqrt(float(((found - expected) ** 2).sum()) / float((expected**2).sum()))
    return value if math.isfinite(value) else None


def fitted(case: Case, config: KernelConfig) -> tuple[Case, KernelConfig]:
    """Return the box of the vortex and the kernel cut to it: no longer chunks or blocks, no flags without walls.

    On a CPU one thread runs it: several would wait for each other after each step, as long as it takes or longer.
    None of that changes how a kernel rounds. The rules decide if the pair may be run.
    """
    box = _box(case, config)
    last = box.domain[case.stencil.dimensions - 1]
    cut: dict[str, Any] = {"flags": "compiled", "register_planes": 0, "threads": 1, "pinning": "none"}
    cut |= {name: min(getattr(config, name, last), last) for name in _ALONG_LAST_AXIS}
    if block := config.clipped_knob:
        x, y, z = getattr(config, block)
        cut[block] = min(x, box.domain[0] // config.access_cells), y, z
    if config.boundary == "predicated":
        cut["boundary"] = "branch"
    own = {one.name for one in fields(config)}
    return box, replace(config, **{name: value for name, value in cut.items() if name in own})


_ALONG_LAST_AXIS = ("z_cells", "sites_per_thread", "chunk_planes", "tile_planes")
"""Knobs of several families that cannot exceed the last extent."""


def _box(case: Case, config: KernelConfig) -> Case:
    """Return a square periodic box with rows that suit the kernel; tiles of persistent kernels are whole rows."""
    block: Block = getattr(config, "block", (1, 1, 1))
    edge = config.row_cells(_EDGE[config.backend])
    depth = 1 if case.stencil.dimensions == 2 else max(_DEPTH, config.memory.tile[2], block[2])
    return Case("box", case.lattice, case.collision, (edge, edge, depth), 1.0, magic=case.magic)


def _compiled(box: Case, config: KernelConfig, compiler: Compiler) -> tuple[Program, Binary]:
    program = render(box, config)
    return program, compiler(program)


def _run(pair: tuple[Program, Binary], case: Case, steps: int, device: Device) -> Flow:
    simulation = Simulation(*pair, device, case)
    simulation.initialise(initial_state(case, device.xp))
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
