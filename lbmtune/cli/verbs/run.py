"""Verbs that run one configuration: verify, measure, accuracy."""

import logging
from collections.abc import Mapping
from typing import Annotated

import typer
from msgspec import to_builtins

from lbmtune import api
from lbmtune.api.machines.devices import several
from lbmtune.backend.ranks import Rank
from lbmtune.backend.registry import this_rank
from lbmtune.cli.arguments.configs import Subject, named, resolve, study_spec
from lbmtune.cli.arguments.options import Config, InParts, Json, OnDevice, Options
from lbmtune.cli.format import output
from lbmtune.cli.format.description import config_text
from lbmtune.cli.format.kernels import accuracy_table, deviation, measurement_rows
from lbmtune.cli.format.several_devices.proofs import print_race, show_agreement
from lbmtune.errors import InputError, NothingValidError
from lbmtune.records import Outcome, Trial
from lbmtune.records.idle_threads import idle_threads

LOG = logging.getLogger("lbmtune")


def verify(
    config: Config,
    options: OnDevice,
    asked: InParts,
    full_size: Annotated[bool, typer.Option("--full-size", help="also on the case's own domain")] = False,
    as_json: Json = False,
) -> None:
    """Check a configuration against the oracle, on small domains.

    With --devices, --parts or --ranks, the domain is cut into parts that exchange. They are compared with one
    device, bit for bit.

    Examples:
        lbmtune verify scheme=aa --device cpu
        lbmtune verify best.json --full-size
    """
    subject = resolve(config, options).legal()
    rank = _rank(options, asked) if asked.ranks else None
    if where := _places(subject, options, asked, rank):
        if full_size:
            raise InputError("--full-size is of one device; leave it out, or leave out --devices, --parts and --ranks.")
        found = api.prove_parts(
            subject.case, subject.config, where, asked.cut, asked.coupling, depth=asked.halo, rank=rank
        )
        show_agreement(found, named(subject), as_json, quietly=_silent(rank))
        return
    _alone(asked)
    trials = api.prove(subject.case, subject.config, subject.device, full_size, study_spec(options).protocol)
    show_proofs(named(subject), trials, as_json)


def show_proofs(named_facts: Mapping[str, object], trials: list[Trial], as_json: bool) -> None:
    """Print verifications; raise NothingValidError if one failed, or if there is none: the kernel did not run.

    named_facts: case and configuration, for JSON.
    """
    found = [trial.verification for trial in trials if trial.verification]
    worst = next((trial for trial in trials if not trial.verification or not trial.verification.passed), trials[0])
    if as_json:
        passed = all(trial.verification and trial.verification.passed for trial in trials)
        facts = {**named_facts, "passed": passed, "outcome": worst.outcome, "reason": worst.reason}
        output.emit_json("verify", {**facts, "verifications": found})
    else:
        for verification in found:
            output.stdout().print(f"{'passed' if verification.passed else 'wrong result'}: {deviation(verification)}")
    if not worst.verification:
        raise NothingValidError(f"the kernel cannot be verified: {worst.outcome}: {' '.join(worst.reason.split())}")
    wrong = [v for v in found if not v.passed]
    if wrong:
        blame = f"; {worst.reason.rpartition('; ')[2]}" if worst.outcome is Outcome.MISCOMPILED else ""
        raise NothingValidError(f"{worst.outcome}: {deviation(wrong[0])}{blame}.")


def measure(
    config: Config,
    options: OnDevice,
    asked: InParts,
    weak: Annotated[
        bool, typer.Option("--weak", help="with --devices: weak scaling, the case's domain on each device")
    ] = False,
    as_json: Json = False,
) -> None:
    """Verify a configuration, then time it on the case's domain.

    With --devices, --parts or --ranks, the domain is cut into parts that exchange. They are verified, then timed
    in turns with one device.

    Examples:
        lbmtune measure scheme=aa --device cpu --set case.domain=64x64x64
        lbmtune measure best.json --devices 0,1
    """
    subject = resolve(config, options).legal()
    rank = _rank(options, asked) if asked.ranks else None
    if where := _places(subject, options, asked, rank):
        _measure_parts(subject, where, asked, rank, weak=weak, as_json=as_json)
        return
    _alone(asked, weak=weak)
    machine = api.measured_machine(subject.device)
    protocol = study_spec(options).protocol
    if remark := idle_threads(subject.case, subject.config):
        LOG.warning(remark)
    trial = api.measure(subject.case, subject.config, subject.device, machine=machine, protocol=protocol)
    if as_json:
        output.emit_json(
            "measure", {"case": subject.case, "machine": machine.name, **to_builtins(trial), "remark": remark}
        )
    elif trial.measurement and trial.mlups is not None:
        output.print_pairs(measurement_rows(trial, trial.measurement, machine))
    if trial.mlups is None:
        raise NothingValidError(f"{trial.outcome}: {trial.reason}")


def accuracy(config: Config, options: OnDevice, as_json: Json = False) -> None:
    """Measure the errors of a configuration's precision against float64, on Taylor-Green vortices.

    Examples:
        lbmtune accuracy storage=fp16s,compute=fp32 --device 0
    """
    subject = resolve(config, options).legal()
    found = api.accuracy(subject.case, subject.config, subject.device, protocol=study_spec(options).protocol)
    if as_json:
        output.emit_json("accuracy", {**named(subject), "accuracy": found})
    else:
        output.stdout().print(accuracy_table(found, subject.config))


def _measure_parts(
    subject: Subject, where: tuple[str, ...], asked: InParts, rank: Rank | None, *, weak: bool, as_json: bool
) -> None:
    """Prove parts, then time them in turns with one device."""
    cut, coupling, depth = asked.cut, asked.coupling, asked.halo
    proof = api.prove_parts(subject.case, subject.config, where, cut, coupling, depth=depth, rank=rank)
    if not proof.passed:
        show_agreement(proof, named(subject), as_json, quietly=_silent(rank))
    machine = None if rank else api.measured_machine(where[0])  # no model knows NCCL
    raced = api.race_parts(
        subject.case, subject.config, where, proof.cut, coupling, weak=weak, machine=machine, depth=depth, rank=rank
    )
    if _silent(rank):
        return
    if as_json:
        known = {"machine": machine.name if machine else None}
        output.emit_json("measure-parts", {**named(subject), **known, **raced.facts()})
    else:
        print_race(raced, config_text(subject.config), proof)


def _rank(options: Options, asked: InParts) -> Rank:
    """Return the rank of this process. Raises InputError."""
    given = {"--device": options.device, "--devices": asked.devices, "--parts": asked.parts}
    if other := next((name for name, value in given.items() if value is not None), ""):
        raise InputError(f"--ranks does not go with {other}; leave one of them out: each rank has a GPU of its own.")
    return this_rank()


def _silent(rank: Rank | None) -> bool:
    """Return whether another process prints what all of them found."""
    return rank is not None and rank.number > 0


def _places(subject: Subject, options: Options, asked: InParts, rank: Rank | None) -> tuple[str, ...]:
    """Return the device of each part, which of ranks is that of this one; none if there is one. Raises InputError."""
    if rank is not None:
        return (str(rank.local),) * rank.count
    if asked.devices is None:
        return (subject.device,) * asked.parts if asked.parts else ()
    if options.device is not None or asked.parts is not None:
        other = "--parts" if asked.parts is not None else "--device"
        raise InputError(f"--devices {asked.devices} does not go with {other}; leave one of them out.")
    return several(asked.devices)


def _alone(asked: InParts, *, weak: bool = False) -> None:
    """Refuse options of several devices. Raises InputError."""
    given = {"--cut": asked.cut, "--coupling": asked.coupling, "--halo": asked.halo, "--weak": weak}
    if name := next((name for name, value in given.items() if value), ""):
        raise InputError(f"{name} goes with --devices, --parts or --ranks; add one of them.")
