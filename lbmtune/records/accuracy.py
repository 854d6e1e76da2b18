"""Errors of a storage format and an arithmetic precision."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AccuracyPoint:
    """Relative L2 errors of a Taylor-Green vortex with one peak velocity; None if a value is not finite.

    density, velocity: relative to a run in float64; ..._to_exact: relative to the analytical solution, of this run and
    of the reference in float64; velocity_scale: in lattice units.
    """

    velocity_scale: float
    relaxation_rate: float
    steps: int
    density: float | None
    velocity: float | None
    density_to_exact: float | None
    velocity_to_exact: float | None
    reference_density_to_exact: float | None
    reference_velocity_to_exact: float | None


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Accuracy of a storage format and an arithmetic precision. domain: of the vortex.

    points: one per peak velocity, at one physical time; after: after many steps; representation, steps: values that a
    cell keeps and steps per launch of the kernel.
    """

    lattice: str
    collision: str
    storage: str
    compute: str
    domain: tuple[int, int, int]
    points: tuple[AccuracyPoint, ...]
    after: AccuracyPoint | None = None
    representation: str = "populations"
    steps: int = 1
