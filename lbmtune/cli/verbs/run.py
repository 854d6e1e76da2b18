"""Verbs that run one configuration: verify, measure, accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lbmtune.cli.arguments.options import RESULTS, Config, Device, Json, Out, Sets, Study
from lbmtune.errors import NothingValidError
from lbmtune.records import Outcome

if TYPE_CHECKING:
    from rich.table import Table

    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.records import Accuracy, Measurement, Trial, Verification


def verify(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    full_size: Annotated[bool, typer.Option("--full-size", help="also on the case's own domain")] = False,
    as_json: Json = False,
) -> None:
    """Proves a configuration against the oracle, on small domains."""
    from lbmtune.cli.arguments.configs import resolve, study_spec
    from lbmtune.measure.workers.evaluate import Evaluator

    subject = resolve(config, study, sets, device, out)
    with Evaluator(subject.case, subject.device, study_spec(study, sets).protocol) as evaluator:
        trials = [evaluator.verify(subject.legal().config)]
        if full_size and trials[0].verification:
            trials.append(evaluator.verify(subject.config, full=True))
    _show_proofs(subject.config.key, trials, as_json)


def _show_proofs(key: str, trials: list[Trial], as_json: bool) -> None:
    """What ended without a verification crashed, took too long or did not compile."""
    from lbmtune.cli.format import output

    found = [trial.verification for trial in trials if trial.verification]
    worst = next((trial for trial in trials if not trial.verification or not trial.verification.passed), trials[0])
    if as_json:
        passed = all(trial.verification and trial.verification.passed for trial in trials)
        facts = {"key": key, "passed": passed, "outcome": worst.outcome, "reason": worst.reason}
        output.emit_json({**facts, "verifications": found})
    else:
        for verification in found:
            output.stdout().print(f"{'passed' if verification.passed else 'wrong result'}: {deviation(verification)}")
    if not worst.verification:
        raise NothingValidError(f"the kernel cannot be verified: {worst.outcome}: {' '.join(worst.reason.split())}")
    wrong = [v for v in found if not v.passed]
    if wrong:
        blame = f"; {worst.reason.rpartition('; ')[2]}" if worst.outcome is Outcome.MISCOMPILED else ""
        raise NothingValidError(f"{worst.outcome}: {deviation(wrong[0])}{blame}.")


def deviation(verification: Verification) -> str:
    """The worst deviation from the oracle in words."""
    domains = ", ".join("x".join(map(str, domain)) for domain in verification.domains)
    return (
        f"error {verification.error:.2e} of {verification.bound:.2e} allowed, worst in direction "
        f"{verification.worst_direction} of cell {verification.worst_cell} after {verification.worst_steps} steps "
        f"on {domains}"
    )


def measure(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """Verifies a configuration, then times it on the case's domain."""
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.arguments.configs import resolve, study_spec
    from lbmtune.cli.format import output
    from lbmtune.measure.workers.evaluate import Evaluator

    subject = resolve(config, study, sets, device, out)
    expected = here.predictor(subject.case, here.machine(subject.device))
    protocol = study_spec(study, sets).protocol
    with Evaluator(subject.case, subject.device, protocol, expected) as evaluator:
        evaluator.submit(0, subject.legal().config)
        trial = evaluator.next()
    if as_json:
        output.emit_json(trial)
    elif trial.measurement and trial.mlups is not None:
        output.print_pairs(_measured(trial, trial.measurement))
    if trial.mlups is None:
        raise NothingValidError(f"{trial.outcome}: {trial.reason}")


def _measured(trial: Trial, measurement: Measurement) -> list[tuple[str, object]]:
    from lbmtune.catalogue.config import from_flat
    from lbmtune.cli.format.description import said
    from lbmtune.units import format_mlups, format_rate

    rows: list[tuple[str, object]] = [
        ("configuration", said(from_flat(trial.config))),
        ("key", trial.key),
        ("measured", f"{format_mlups(measurement.mlups)} MLUPS"),
        (
            "95 % interval",
            f"{format_mlups(measurement.ci_low_mlups)} .. {format_mlups(measurement.ci_high_mlups)} MLUPS",
        ),
        ("samples", f"{len(measurement.samples_s)} of {measurement.steps_per_sample} steps"),
        ("bandwidth", format_rate(measurement.bandwidth_bytes_per_s)),
    ]
    if trial.prediction:
        share = measurement.mlups / trial.prediction.mlups
        rows.append(
            ("expected", f"{format_mlups(trial.prediction.mlups)} MLUPS, measured is {100 * share:.1f} % of it")
        )
    if measurement.disturbed:
        rows.append(("disturbed", "the device was not left alone while samples were taken"))
    return rows


def accuracy(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """What the precision of a configuration costs, against float64.

    Measured on Taylor-Green vortices.
    """
    from lbmtune.cli.arguments.configs import resolve, study_spec
    from lbmtune.cli.format import output
    from lbmtune.measure.workers.evaluate import Evaluator

    subject = resolve(config, study, sets, device, out)
    legal = subject.legal().config
    with Evaluator(subject.case, subject.device, study_spec(study, sets).protocol) as evaluator:
        found = evaluator.accuracy(legal)
    if as_json:
        output.emit_json({"key": legal.key, "accuracy": found})
    else:
        output.stdout().print(_accuracy_table(found, legal))


def _accuracy_table(found: Accuracy, config: KernelConfig) -> Table:
    from lbmtune.cli.format import output
    from lbmtune.search.kinds import kind_of

    domain = "x".join(map(str, found.domain))
    what = f"{kind_of(config).state}, {found.steps} step{'s' if found.steps > 1 else ''} per launch"
    title = (
        f"L2 errors of {found.lattice} {found.collision}, {what}, stored as {found.storage}, computed in "
        f"{found.compute}, on {domain} cells"
    )
    columns = ("u0>", "steps>", "velocity>", "density>", "to exact>", "fp64>", "density to exact>", "fp64>")
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
    """An error as people read it."""
    return "not finite" if value is None else f"{value:.2e}"
