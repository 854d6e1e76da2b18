"""Print what running one kernel gives: its deviation from the oracle, its measurement, its accuracy."""

from rich.table import Table

from lbmtune.catalogue.config import KernelConfig
from lbmtune.cli.format import output
from lbmtune.cli.format.description import config_text, unreliable
from lbmtune.model.machine.description import Machine
from lbmtune.records import Accuracy, Measurement, Trial, Verification
from lbmtune.records.comparison.repeats import repeat_interval
from lbmtune.search.kinds import kind_of
from lbmtune.units import format_mlups, format_rate


def deviation(verification: Verification) -> str:
    """Return the worst deviation from the oracle in words."""
    domains = ", ".join("x".join(map(str, domain)) for domain in verification.domains)
    return (
        f"error {verification.error:.2e} of {verification.bound:.2e} allowed, worst in direction "
        f"{verification.worst_direction} of cell {verification.worst_cell} after {verification.worst_steps} steps "
        f"on {domains}"
    )


def measurement_rows(trial: Trial, measurement: Measurement, machine: Machine) -> list[tuple[str, object]]:
    """Return names and values of a measured trial: speed, interval, samples, bandwidth, prediction.

    machine: the description of the device.
    """
    interval = repeat_interval(measurement, machine.between_runs)
    rows: list[tuple[str, object]] = [
        ("configuration", config_text(trial.kernel_config)),
        ("key", trial.key),
        ("measured", f"{format_mlups(measurement.mlups)} MLUPS"),
        ("interval", f"{format_mlups(interval.low_mlups)} .. {format_mlups(interval.high_mlups)} MLUPS, {interval}"),
        ("samples", f"{len(measurement.samples_s)} of {measurement.steps_per_sample} steps"),
        ("bandwidth", format_rate(measurement.bandwidth_bytes_per_s)),
    ]
    if trial.prediction:
        share = f"measured is {100 * measurement.mlups / trial.prediction.mlups:.1f} % of it"
        rows.append(("expected", f"{format_mlups(trial.prediction.mlups)} MLUPS, {unreliable(machine) or share}"))
    if measurement.disturbed:
        rows.append(("disturbed", "other programs used the device while samples were taken"))
    return rows


_ERRORS = (
    "velocity",
    "density",
    "velocity to exact",
    "velocity to exact, fp64",
    "density to exact",
    "density to exact, fp64",
)
"""Errors against the reference, and of kernel and reference against the exact solution."""


def accuracy_table(found: Accuracy, config: KernelConfig) -> Table:
    """Return the errors of a precision as a table: one row per velocity, relative L2 norms."""
    domain = "x".join(map(str, found.domain))
    kept = f"{kind_of(config).state}, {found.steps} step{'s' if found.steps > 1 else ''} per launch"
    title = (
        f"L2 errors of {found.lattice} {found.collision}, {kept}, stored as {found.storage}, computed in "
        f"{found.compute}, on {domain} cells"
    )
    columns = ("u0>", "steps>", *(f"{name}>" for name in _ERRORS))
    rows = [
        (
            f"{p.velocity_scale:g}",
            p.steps,
            *map(
                scientific,
                (
                    p.velocity,
                    p.density,
                    p.velocity_to_exact,
                    p.reference_velocity_to_exact,
                    p.density_to_exact,
                    p.reference_density_to_exact,
                ),
            ),
        )
        for p in (*found.points, *([found.after] if found.after else []))
    ]
    return output.table(title, columns, rows)


def scientific(value: float | None) -> str:
    """Return an error with three digits."""
    return "not finite" if value is None else f"{value:.2e}"
