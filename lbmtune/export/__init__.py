"""best.json: the winner of a study for a solver. `lbmtune.records.best_json.document` defines and reads the format."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.families.rules import Limits, cuda_limits
from lbmtune.catalogue.footprint import footprint_bytes
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.errors import InputError, NothingValidError
from lbmtune.export.on_parts import on_parts
from lbmtune.export.own_kernel import FORMATS
from lbmtune.records import Environment, Trial, made_of
from lbmtune.records.best_json.document import Alternate, Best, Expected, encode_best, read_best
from lbmtune.records.best_json.kernel import Kernel
from lbmtune.records.comparison.repeats import RepeatInterval
from lbmtune.records.remarks import description_disturbance, speed_doubts
from lbmtune.records.spec import StudySpec
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically
from lbmtune.search.pareto import members, place_in

__all__ = ["best", "chosen", "exported", "printed_kernel", "read_best", "write_best"]
ALTERNATES = 20


def write_best(study: StudyRecord, path: Path, member: int | None = None, trial: int | None = None) -> None:
    """Write best.json. Raises NothingValidError, and InputError if the path cannot be written, or as `best` does."""
    write_atomically(path, encode_best(best(study, member, trial)))


def best(study: StudyRecord, member: int | None = None, trial: int | None = None) -> Best:
    """Return the best kernel of a study, of one on several devices that on parts; or a member of its Pareto set.

    trial: number of a verified trial, in place of the best. Raises NothingValidError, and InputError if there is no
    such member or trial, or if this version prints another kernel than the one that was measured.
    """
    if not study.ranked:
        raise NothingValidError(f"study {study.header.spec.name} holds no verified measurement; nothing to export.")
    if study.header.spec.kernel:
        raise InputError(f"a kernel of your own has no solver around it (use format={', '.join(FORMATS)}).")
    header, found = study.header, members(study)
    several = study.winner_on_parts if member is None and trial is None else None
    winner = several[1] if several else chosen(study, member, trial) or study.ranked[0]
    program = _program(study, winner)
    ranked = [(rank, trial) for rank, trial in enumerate(study.ranked, 1) if trial is not winner]
    return Best(
        study=header.spec.name,
        objective=",".join(header.spec.objectives),
        case=header.spec.case,
        key=winner.key,
        configuration=winner.config,
        kernel=exported(program, winner, header.environment),
        storage=describe_storage(program),
        expected=_expected(study, winner, program),
        ceiling=header.ceiling,
        environment=header.environment,
        verification=winner.verification,
        resources=winner.resources,
        prediction=winner.prediction,
        alternates=tuple(_alternate(rank, t) for rank, t in ranked[:ALTERNATES]),
        date=winner.date or header.date,
        lbmtune=header.version,
        accuracy=winner.accuracy,
        limits=header.spec.limits,
        member=place_in(found, winner),
        proven=winner.proven,
        finished=study.finished,
        ceiling_doubt=description_disturbance(*header.cpu_shares),
        left_out=header.left_out,
        parts=on_parts(header.spec.case, several[0], header.parts) if several and header.parts else None,
    )


def chosen(study: StudyRecord, member: int | None = None, trial: int | None = None) -> Trial | None:
    """Return a member of the Pareto set, or a verified trial by its number; None if neither is asked for.

    Raises InputError if there is none, or both are asked for.
    """
    if member is not None and trial is not None:
        raise InputError(f"--member {member} and --trial {trial} each name a kernel; leave one out.")
    if member is not None:
        return _member(members(study), member, study.header.spec)
    found = next((one for one in study.ranked if one.number == trial), None)
    if trial is not None and found is None:
        name = study.header.spec.name
        raise InputError(
            f"--trial {trial}: study {name} has no verified trial of that number; lbmtune report lists those it has, "
            f"such as {study.ranked[0].number}."
        )
    return found


def _member(found: Sequence[Trial], member: int, spec: StudySpec) -> Trial:
    if not spec.beside:
        raise InputError(f"--member {member}: study {spec.name} has one objective and no Pareto set; leave it out.")
    if not found:
        limit = "" if spec.max_power_w is None else f", and known to stay within --max-power {spec.max_power_w:g} W"
        raise InputError(
            f"--member {member}: the Pareto set of study {spec.name} is empty, as no kernel is measured in "
            f"{', '.join(spec.objectives)}{limit}; leave it out, or go on with lbmtune study --resume."
        )
    if not 1 <= member <= len(found):
        raise InputError(f"--member {member} is not supported for {spec.name} (use 1 to {len(found)}).")
    return found[member - 1]


def printed_kernel(study: StudyRecord) -> Kernel | None:
    """Return the kernel of the best trial as this version prints it; None if none was verified, or a user wrote it.

    Its digest is that of the code, without comments, as in a record of the trial.
    """
    if not study.ranked or study.header.spec.kernel:
        return None
    program = render(study.header.spec.case, study.ranked[0].kernel_config)
    return replace(describe_kernel(program, study.ranked[0].binary_digest), source_digest=program.digest)


def _program(study: StudyRecord, winner: Trial) -> Program:
    program = render(study.header.spec.case, winner.kernel_config)
    if winner.source_digest and winner.source_digest != program.digest:
        raise InputError(
            f"the kernel of {winner.key} was measured with source {winner.source_digest[:12]} and this lbmtune prints "
            f"{program.digest[:12]}; export with lbmtune {study.header.version} or run the study again."
        )
    return program


def exported(program: Program, winner: Trial, environment: Environment) -> Kernel:
    """Return a trial's kernel, with the one for left-over steps unless that failed its verification.

    environment: where it was tuned.
    """
    kernel = describe_kernel(program, winner.binary_digest, _limits(environment))
    single = winner.verification and winner.verification.single
    return replace(kernel, single=None) if single and not single.passed else kernel


def _limits(environment: Environment) -> Limits:
    """Return the limits of a recorded device, as far as a record tells them: not its multiprocessors."""
    if BACKENDS[environment.backend].shares_host:
        return Limits(cores=environment.cores, vector_bits=environment.vector_bits)
    return cuda_limits(environment.architecture, 1, environment.memory_bytes)


def _expected(study: StudyRecord, winner: Trial, program: Program) -> Expected:
    return made_of(
        Expected,
        winner.best_measurement,
        footprint_bytes=footprint_bytes(program.case, program.config),
        share_of_ceiling=study.share_of_ceiling(winner),
        samples=len(winner.best_measurement.samples_s),
        sustained=winner.sustained,
        doubts=speed_doubts(study, None if winner is study.ranked[0] else winner),
        **_repeats(study.interval(winner)),
    )


def _repeats(found: RepeatInterval) -> dict[str, float]:
    """Return the fields of `Expected` on repeats; none if the spread between runs was not measured."""
    if found.between is None:
        return {}
    return {
        "between_runs": found.between,
        "repeat_low_mlups": found.low_mlups,
        "repeat_high_mlups": found.high_mlups,
    }


def _alternate(rank: int, trial: Trial) -> Alternate:
    return made_of(
        Alternate, trial.best_measurement, rank=rank, key=trial.key, configuration=trial.config, proven=trial.proven
    )
