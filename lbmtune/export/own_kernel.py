"""The best values of a user's kernel: as JSON, as a header of macros, and as options of a compiler."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from lbmtune.catalogue.config import Scalar
from lbmtune.catalogue.own_kernel.definition import THREADS
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.render import render
from lbmtune.errors import InputError, NothingValidError
from lbmtune.printable import plain
from lbmtune.records import Environment, Measurement, Trial, Verification
from lbmtune.records.remarks import speed_doubts
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import write_atomically

FORMAT, VERSION = "lbmtune.own-kernel", 1


@dataclass(frozen=True, kw_only=True)
class OwnLaunch:
    """The launch of a CUDA kernel on the domain of the study."""

    block: tuple[int, int, int]
    grid: tuple[int, int, int]
    shared_bytes: int


@dataclass(frozen=True, kw_only=True)
class OwnBest:
    """The best values of a user's kernel. format and version: checked first.

    kernel, digest: name and SHA-256 of its description; values: of all knobs; options: of the compiler, with a
    definition of each macro; launch: null for a kernel in C; doubts: why the speed is not reliable, in sentences;
    proven: whether it was verified on the whole domain; finished: whether the study came to its end.
    """

    format: str = FORMAT
    version: int = VERSION
    study: str
    kernel: str
    digest: str
    key: str
    entry: str
    domain: tuple[int, int, int]
    values: dict[str, Scalar]
    options: tuple[str, ...]
    launch: OwnLaunch | None
    expected: Measurement
    doubts: tuple[str, ...]
    verification: Verification | None
    proven: bool
    finished: bool
    environment: Environment
    date: str
    lbmtune: str


def own_best(study: StudyRecord, member: int | None = None) -> OwnBest:
    """Return the best values of the study of a user's kernel. Raises NothingValidError, InputError for a member."""
    header = study.header
    if member is not None:
        raise InputError(f"--member {member} is not supported for a kernel of your own (leave it out).")
    if not study.ranked:
        raise NothingValidError(f"study {header.spec.name} holds no verified measurement; nothing to export.")
    winner = study.ranked[0]
    program = _program(study, winner)
    return OwnBest(
        study=header.spec.name,
        kernel=program.kernel.name,
        digest=program.kernel.digest,
        key=winner.key,
        entry=program.launch.entry,
        domain=program.case.domain,
        values=program.own.values,
        options=program.options,
        launch=_launch(program),
        expected=winner.best_measurement,
        doubts=tuple(speed_doubts(study)),
        verification=winner.verification,
        proven=winner.proven,
        finished=study.finished,
        environment=header.environment,
        date=winner.date or header.date,
        lbmtune=header.version,
    )


def _program(study: StudyRecord, winner: Trial) -> OwnProgram:
    program = render(study.header.spec.case, winner.kernel_config)
    assert isinstance(program, OwnProgram)
    return program


def _launch(program: OwnProgram) -> OwnLaunch | None:
    if program.in_c:
        return None
    launch = program.launch
    return OwnLaunch(
        block=launch.block, grid=program.grid(launch, program.case.domain), shared_bytes=launch.shared_bytes
    )


def as_json(found: OwnBest) -> str:
    """Return the values as JSON."""
    return msgspec.json.format(msgspec.json.encode(found)).decode() + "\n"


def as_defines(found: OwnBest) -> str:
    """Return the values as a header of macros."""
    macros = (option.removeprefix("-D").replace("=", " ", 1) for option in found.options if option.startswith("-D"))
    domain, speed = "x".join(map(str, found.domain)), f"{found.expected.mlups:.4g} MLUPS"
    threads = [f"/* threads: {found.values[THREADS]} */"] if THREADS in found.values else []
    return "\n".join(
        (
            f"/* The best values of {plain(found.kernel)} ({plain(found.entry)}): {speed} on {domain} cells,",
            f"   {plain(found.environment.device)}. Written by lbmtune {plain(found.lbmtune)}. */",
            "#pragma once",
            *(f"#define {' '.join(macro.split())}" for macro in macros),
            *threads,
            "",
        )
    )


def as_flags(found: OwnBest) -> str:
    """Return the values as options of a compiler, in one line."""
    return " ".join(found.options) + "\n"


FORMATS = {"best": ("best.json", as_json), "defines": ("best.h", as_defines), "flags": ("best.flags", as_flags)}
"""Formats of the best values: the name of each file, and its text."""


def write_own(study: StudyRecord, kind: str, path: Path | None, folder: Path, member: int | None = None) -> Path:
    """Write the best values in a format, and return the path (default: in the folder). Raises InputError."""
    if kind not in FORMATS:
        raise InputError(f"format={kind} is not supported for a kernel of your own (use {', '.join(FORMATS)}).")
    name, text = FORMATS[kind]
    target = folder / name if path is None else path
    write_atomically(target, text(own_best(study, member)).encode())
    return target
