"""Verbs that run one configuration: verify, measure, accuracy."""

import logging
from typing import Annotated

import typer
from msgspec import to_builtins

from lbmtune import api
from lbmtune.cli.arguments.configs import resolve, study_spec
from lbmtune.cli.arguments.options import Config, Json, OnDevice
from lbmtune.cli.format import output
from lbmtune.cli.format.kernels import accuracy_table, deviation, measurement_rows
from lbmtune.errors import NothingValidError
from lbmtune.records import Outcome, Trial
from lbmtune.records.idle_threads import idle_threads

LOG = logging.getLogger("lbmtune")


def verify(
    config: Config,
    options: OnDevice,
    full_size: Annotated[bool, typer.Option("--full-size", help="also on the case's own domain")] = False,
    as_json: Json = False,
) -> None:
    """Check a configuration against the oracle, on small domains."""
    subject = resolve(config, options).legal()
    trials = api.prove(subject.case, subject.config, subject.device, full_size, study_spec(options).protocol)
    show_proofs(subject.config.key, trials, as_json)


def show_proofs(key: str, trials: list[Trial], as_json: bool) -> None:
    """Print verifications; raise NothingValidError if one failed, or if there is none: the kernel did not run."""
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


def measure(config: Config, options: OnDevice, as_json: Json = False) -> None:
    """Verify a configuration, then time it on the case's domain."""
    subject = resolve(config, options).legal()
    machine = api.measured_machine(subject.device)
    protocol = study_spec(options).protocol
    if remark := idle_threads(subject.case, subject.config):
        LOG.warning(remark)
    trial = api.measure(subject.case, subject.config, subject.device, machine=machine, protocol=protocol)
    if as_json:
        output.emit_json({**to_builtins(trial), "remark": remark})
    elif trial.measurement and trial.mlups is not None:
        output.print_pairs(measurement_rows(trial, trial.measurement, machine))
    if trial.mlups is None:
        raise NothingValidError(f"{trial.outcome}: {trial.reason}")


def accuracy(config: Config, options: OnDevice, as_json: Json = False) -> None:
    """Measure the errors of a configuration's precision against float64, on Taylor-Green vortices."""
    subject = resolve(config, options).legal()
    found = api.accuracy(subject.case, subject.config, subject.device, protocol=study_spec(options).protocol)
    if as_json:
        output.emit_json({"key": subject.config.key, "accuracy": found})
    else:
        output.stdout().print(accuracy_table(found, subject.config))
