"""Compare regularised collision with BGK, moments with populations, on flows with known answers.

    python -m scripts.measurements.physics OUT                             all parts, on GPU 0
    python -m scripts.measurements.physics OUT --parts vortex --device 1
    python -m scripts.measurements.physics OUT --sizes 128,256             cells along an edge of the turbulent box

Parts: vortex (decay of a two-dimensional Taylor-Green vortex), cavity (centre lines of a lid-driven cavity at Reynolds
numbers 100, 400 and 1000), turbulence (decay of the three-dimensional Taylor-Green vortex at Reynolds number 1600). OUT
gets physics.json; docs/lab/regularised.md is written from it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lbmtune.backend.protocol import Binary, Compiler, Device
from lbmtune.backend.registry import compiler_for, open_device
from lbmtune.catalogue.config import CudaConfig, cuda
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.measure.verification.accuracy import l2_error, vortex
from lbmtune.runtime import Simulation
from lbmtune.runtime.solver import equilibrium

Array = Any
PARTS = ("vortex", "cavity", "turbulence")
SIZES = (128, 192, 256)
OPERATORS = ("regularised", "bgk")
REYNOLDS = 1600
SPEED = 0.05
"""Peak velocity of the turbulent box and velocity of the lid, in lattice units: a Mach number of 0.09."""
_LAST, _INTERVAL = 12.0, 0.1
"""Length and interval of the turbulent box, in units of L / V0."""
_CROSSINGS, _STEADY = 100, 1e-6
"""Most crossings of the cavity by the lid, and the change per crossing of a steady flow."""

_GHIA_U = """
    0.0547 -0.03717 -0.08186 -0.18109
    0.0625 -0.04192 -0.09266 -0.20196
    0.0703 -0.04775 -0.10338 -0.22220
    0.1016 -0.06434 -0.14612 -0.29730
    0.1719 -0.10150 -0.24299 -0.38289
    0.2813 -0.15662 -0.32726 -0.27805
    0.4531 -0.21090 -0.17119 -0.10648
    0.5000 -0.20581 -0.11477 -0.06080
    0.6172 -0.13641  0.02135  0.05702
    0.7344  0.00332  0.16256  0.18719
    0.8516  0.23151  0.29093  0.33304
    0.9531  0.68717  0.55892  0.46604
    0.9609  0.73722  0.61756  0.51117
    0.9688  0.78871  0.68439  0.57492
    0.9766  0.84123  0.75837  0.65928
"""
_GHIA_V = """
    0.0625  0.09233  0.18360  0.27485
    0.0703  0.10091  0.19713  0.29012
    0.0781  0.10890  0.20920  0.30353
    0.0938  0.12317  0.22965  0.32627
    0.1563  0.16077  0.28124  0.37095
    0.2266  0.17507  0.30203  0.33075
    0.2344  0.17527  0.30174  0.32235
    0.5000  0.05454  0.05186  0.02526
    0.8047 -0.24533 -0.38598 -0.31966
    0.8594 -0.22445 -0.44993 -0.42665
    0.9063 -0.16914      nan -0.51550
    0.9453 -0.10313 -0.22847 -0.39188
    0.9531 -0.08864 -0.19254 -0.33714
    0.9609 -0.07391 -0.15663 -0.27669
    0.9688 -0.05906 -0.12146 -0.21388
"""
"""u along y and v along x on the centre lines, over the velocity of the lid, at Reynolds numbers 100, 400 and 1000.

Source: Ghia, Ghia, Shin, J. Comput. Phys. 48 (1982), tables I and II; nan: a value with a misprint in its first digit.
"""
GHIA = tuple(np.array(text.split(), dtype=float).reshape(-1, 4).T for text in (_GHIA_U, _GHIA_V))
CAVITIES = ((100, 128), (400, 128), (1000, 128), (1000, 192), (1000, 256))
"""Reynolds numbers and cells along an edge."""


class Bench:
    """A device and its compiler; flows that differ only in launch arguments share a kernel."""

    def __init__(self, device: Device, compiler: Compiler) -> None:
        self.device, self._compiler = device, compiler
        self._kernels: dict[tuple[Case, CudaConfig], tuple[Program, Binary]] = {}
        self.sources: dict[str, list[str]] = {}
        """Digests of kernel texts by lattice, operator and storage."""

    def simulation(self, case: Case, storage: str) -> Simulation:
        """Create a simulation. Raises ValueError if the kernel is not legal here."""
        key = alike(case, storage)
        if reason := broken(*key, self.device.limits):
            raise ValueError(reason)
        if key not in self._kernels:
            program = render(*key)
            self._kernels[key] = program, self._compiler(program)
            self.sources.setdefault(f"{case.stencil.name} {case.collision} {storage}", []).append(program.digest)
        return Simulation(*self._kernels[key], self.device, case)


def alike(case: Case, storage: str) -> tuple[Case, CudaConfig]:
    """Return the case and configuration of the kernel that a flow shares with others."""
    extents = (64, 64, 1 if case.stencil.dimensions == 2 else 64)
    common = replace(case, domain=extents, relaxation_rate=1.0, velocity_scale=SPEED)
    return common, kernel(common, storage)


def kernel(case: Case, storage: str) -> CudaConfig:
    """Return a kernel of moments with two steps per launch for regularised collision, else one of populations."""
    compute = "fp64" if storage == "fp64" else "fp32"
    if case.collision != "regularised":
        return cuda.Direct(storage=storage, compute=compute, block=(32, 4, 1))
    fused = cuda.TemporalBlocking(representation="moments", storage=storage, compute=compute, steps=2, pack=2)
    if case.stencil.dimensions == 2:
        return replace(fused, block=(32, 4, 1), chunk_planes=64)
    return replace(fused, rows=2, block=(32, 8, 1), chunk_planes=32)


def rate(viscosity: float) -> float:
    """Return the relaxation rate of a viscosity in lattice units."""
    return 1 / (3 * viscosity + 0.5)


# a vortex that decays


def vortices(bench: Bench) -> Iterator[dict[str, object]]:
    """Yield the decay of a Taylor-Green vortex, each with twice the cells and half the velocity of the last."""
    for lattice, sizes in {"d2q9": (32, 64, 128), "d3q19": (32, 64)}.items():
        for operator in OPERATORS:
            for storage in ("fp64", "fp32"):
                for size in sizes:
                    yield decay(bench, lattice, operator, storage, size)


def decay(bench: Bench, lattice: str, operator: str, storage: str, size: int) -> dict[str, object]:
    """Run a vortex for one decay time; return the relative errors of viscosity, velocity and density."""
    viscosity, speed = 0.016, 0.05 * 32 / size
    domain = (size, size, 1 if lattice == "d2q9" else 8)
    case = replace(box(lattice, operator, domain, rate(viscosity)), velocity_scale=speed)
    steps = 4 * round(1 / (2 * viscosity * (2 * math.pi / size) ** 2) / 4)
    simulation, xp = bench.simulation(case, storage), bench.device.xp
    simulation.initialise(equilibrium(*vortex(case, 0, xp), case.stencil, xp))
    simulation.step(steps // 2)
    early = energy(*simulation.macroscopic())
    simulation.step(steps // 2)
    found, exact = simulation.macroscopic(), vortex(case, steps, xp)
    measured = math.log(early / energy(*found)) / (4 * (2 * math.pi / size) ** 2 * (steps // 2))
    errors = {"density": l2_error(found[0], exact[0]), "velocity": l2_error(found[1], exact[1])}
    said = {"lattice": lattice, "operator": operator, "storage": storage, "cells": size, "steps": steps}
    return {**said, "viscosity_error": measured / viscosity - 1, **errors}


def energy(density: Array, velocity: Array) -> float:
    """Return the mean kinetic energy of the box."""
    return float((0.5 * density * (velocity**2).sum(axis=0)).mean())


# a cavity with a lid that moves


def cavities(bench: Bench) -> Iterator[dict[str, object]]:
    """Yield cavities by Reynolds number and operator. roughness: largest second difference of u along y."""
    for reynolds, size in CAVITIES:
        column = 1 + (100, 400, 1000).index(reynolds)
        for operator in OPERATORS:
            case = cavity("d2q9", operator, (size, size, 1), rate(SPEED * size / reynolds), SPEED)
            u, v, crossings = centre_lines(bench, case, _CROSSINGS)
            yield {
                "reynolds": reynolds,
                "operator": operator,
                "cells": size,
                "relaxation_rate": case.relaxation_rate,
                "crossings": crossings,
                "roughness": float(np.abs(np.diff(u, 2)).max()),
                "u_error": deviation(u, (0.0, 1.0), GHIA[0][0], GHIA[0][column]),
                "v_error": deviation(v, (0.0, 0.0), GHIA[1][0], GHIA[1][column]),
                "u": [round(float(value), 6) for value in u],
                "v": [round(float(value), 6) for value in v],
            }


def centre_lines(bench: Bench, case: Case, most: int) -> tuple[Array, Array, int]:
    """Return the steady centre lines over the lid velocity, u along y and v along x, and the crossings of the lid."""
    size = case.domain[0]
    simulation = bench.simulation(case, "fp64")
    xp = bench.device.xp
    still, rest = xp.ones(case.domain[::-1]), xp.zeros((3, *case.domain[::-1]))
    simulation.initialise(equilibrium(still, rest, case.stencil, xp))
    before, crossings = xp.zeros((2, size, size)), 0
    while crossings < most:
        simulation.step(4 * round(size / SPEED / 4))
        crossings += 1
        now = simulation.macroscopic()[1][:2, 0] / SPEED
        if float(abs(now - before).max()) < _STEADY:
            break
        before = now
    u, v = (np.asarray(a.get() if hasattr(a, "get") else a) for a in now)
    middle = slice(size // 2 - 1, size // 2 + 1)  # the centre lines run between two cells
    return u[:, middle].mean(axis=1), v[middle].mean(axis=0), crossings


def deviation(profile: Array, walls: tuple[float, float], places: Array, values: Array) -> float:
    """Return the largest deviation from a table; cell centres lie at (i + 1/2) / n, walls at 0 and 1."""
    centres = (np.arange(len(profile)) + 0.5) / len(profile)
    found = np.interp(places, [0.0, *centres, 1.0], [walls[0], *profile, walls[1]])
    return float(np.nanmax(np.abs(found - values)))


# a box that becomes turbulent


def turbulences(bench: Bench, sizes: Sequence[int]) -> Iterator[dict[str, object]]:
    """Yield turbulent boxes by size and operator, then the smallest in double precision."""
    for size in sizes:
        for operator in OPERATORS:
            yield turbulence(bench, size, operator, "fp32")
    yield turbulence(bench, min(sizes), "regularised", "fp64")


def turbulence(bench: Bench, size: int, operator: str, storage: str, last: float = _LAST) -> dict[str, object]:
    """Return energy E, dissipation rate -dE/dt and that of the resolved strain over time, with L = edge / 2 pi and V0.

    Source: Brachet et al., J. Fluid Mech. 130 (1983).
    """
    length = size / (2 * math.pi)
    case = box("d3q19", operator, (size, size, size), rate(SPEED * length / REYNOLDS))
    simulation, xp = bench.simulation(case, storage), bench.device.xp
    simulation.initialise(equilibrium(*start(size, xp), case.stencil, xp))
    every = 2 * max(1, round(_INTERVAL * length / SPEED / 2))
    interval, begin = every * SPEED / length, time.perf_counter()
    energies, strains = [], []
    for n in range(1 + math.ceil(last / interval)):
        simulation.step(every if n else 0)
        density, velocity = simulation.macroscopic()
        energies.append(energy(density, velocity) / SPEED**2)
        strains.append(2 / REYNOLDS * enstrophy(velocity, xp) * (length / SPEED) ** 2)
        if not math.isfinite(energies[-1]):
            break
    found = peak(energies, interval) if math.isfinite(energies[-1]) else {"diverged_at": (len(energies) - 1) * interval}
    return {
        **{"operator": operator, "storage": storage, "cells": size, "relaxation_rate": case.relaxation_rate},
        **{"interval": interval, **found, "strain_share": share(energies, strains, interval)},
        **{"energy": energies, "strain_dissipation": strains, "seconds": time.perf_counter() - begin},
    }


def start(size: int, xp: Any) -> tuple[Array, Array]:
    """Return density and velocity of the 3-D Taylor-Green vortex, with pressure from the Poisson equation."""
    x = 2 * math.pi / size * xp.arange(size, dtype=xp.float64)
    y, z = x[:, None], x[:, None, None]
    velocity = xp.zeros((3, size, size, size))
    velocity[0] = SPEED * xp.sin(x) * xp.cos(y) * xp.cos(z)
    velocity[1] = -SPEED * xp.cos(x) * xp.sin(y) * xp.cos(z)
    return 1 + 3 * SPEED**2 / 16 * (xp.cos(2 * x) + xp.cos(2 * y)) * (xp.cos(2 * z) + 2), velocity


def enstrophy(velocity: Array, xp: Any) -> float:
    """Return half of the mean squared vorticity, by central differences of eighth order."""

    def slope(component: int, axis: int) -> Array:
        field, along = velocity[component], 2 - axis
        weights = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
        return sum(w * (xp.roll(field, -n, along) - xp.roll(field, n, along)) for n, w in enumerate(weights, 1))

    pairs = ((2, 1), (0, 2), (1, 0))
    return sum(float(((slope(a, b) - slope(b, a)) ** 2).mean()) for a, b in pairs) / 2


def peak(energies: Sequence[float], interval: float) -> dict[str, float]:
    """Return time and height of the peak dissipation rate, by a parabola through the largest values."""
    rates = -np.gradient(np.asarray(energies), interval)
    at = min(max(int(rates.argmax()), 1), len(rates) - 2)
    low, top, high = rates[at - 1 : at + 2]
    bend = low - 2 * top + high
    shift = 0.5 * (low - high) / bend if bend else 0.0
    return {"peak_time": float((at + shift) * interval), "peak": float(top - 0.25 * (low - high) * shift)}


def share(energies: Sequence[float], strains: Sequence[float], interval: float) -> float | None:
    """Return the dissipation of the resolved strain over that of energy; the rest is numerical."""
    lost = energies[0] - energies[-1]
    return float(np.trapezoid(strains, dx=interval) / lost) if math.isfinite(lost) and lost > 0 else None


def main() -> int:
    """Run the parts; each result is written at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--device", default="0")
    given = parser.parse_args()
    device = open_device(given.device)
    bench = Bench(device, compiler_for(device.environment))
    sizes = [int(size) for size in given.sizes.split(",")]
    found: dict[str, object] = {
        "device": device.environment.device,
        "environment": msgspec.to_builtins(device.environment),
        "sources": bench.sources,
        "speed": SPEED,
        "reynolds": REYNOLDS,
    }
    parts: dict[str, Callable[[], Iterator[dict[str, object]]]] = {
        "vortex": lambda: vortices(bench),
        "cavity": lambda: cavities(bench),
        "turbulence": lambda: turbulences(bench, sizes),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    for part in given.parts.split(","):
        rows: list[dict[str, object]] = []
        found[part] = rows
        for row in parts[part]():
            rows.append(row)
            print(part, {key: value for key, value in row.items() if not isinstance(value, list)}, flush=True)
            (given.out / "physics.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
