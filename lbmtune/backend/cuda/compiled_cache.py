"""What kernels use once they are compiled, kept on disk: for a ranking of many of them on a machine without a GPU."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from lbmtune.backend.cuda import nvrtc, sass
from lbmtune.backend.protocol import CompileError
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render
from lbmtune.cores import pool
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Resources
from lbmtune.records.caches import cache_folder
from lbmtune.records.store import write_atomically

_SHARE = 4
"""Kernels that a process compiles before it asks for more."""


class Compiled(msgspec.Struct, frozen=True):
    """resources: None where the kernel could not be compiled, for the reason."""

    resources: Resources | None = None
    reason: str = ""


def compiled_all(case: Case, configs: Sequence[KernelConfig], architecture: str, processes: int) -> Iterator[Compiled]:
    """In their order, as they are there, by several processes where they are many.

    Raises DeviceUnavailableError without NVRTC.
    """
    nvrtc.version()
    work = partial(compiled, case, architecture)
    if min(processes, len(configs) // _SHARE) < 2:
        yield from map(work, configs)
        return
    with pool(processes) as workers:
        yield from workers.map(work, configs, chunksize=_SHARE)


def compiled(case: Case, architecture: str, config: KernelConfig) -> Compiled:
    """From the cache, where the same text was compiled by the same NVRTC. Raises DeviceUnavailableError without it."""
    program = render(case, config)
    path = _path(program, architecture)
    if kept := _kept(path):
        return kept
    try:  # not there, or of another version
        found = Compiled(nvrtc.compile_cuda(program, architecture).resources)
    except CompileError as error:
        found = Compiled(reason=str(error))
    write_atomically(path, msgspec.json.encode(found))
    return found


def compiled_before(case: Case, architecture: str, config: KernelConfig) -> Resources | None:
    """What a kernel for a GPU uses, where it lies in the cache; nothing is compiled. None without NVRTC, too."""
    try:
        kept = _kept(_path(render(case, config), architecture))
    except DeviceUnavailableError:
        return None
    return kept.resources if kept else None


def _path(program: Program, architecture: str) -> Path:
    """By text and options, architecture, version of NVRTC, and what reads figures off that.

    Raises DeviceUnavailableError without NVRTC.
    """
    named = "\0".join((program.digest, architecture, ".".join(map(str, nvrtc.version())), _readers()))
    return cache_folder("nvrtc") / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.json"


@cache
def _readers() -> str:
    """Digest of the modules that read a log and a cubin: another version of them may find more, or something else."""
    texts = (Path(str(module.__file__)).read_bytes() for module in (nvrtc, sass))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _kept(path: Path) -> Compiled | None:
    """None where it is not there, or was written by another version."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Compiled)
    except (OSError, msgspec.DecodeError):
        return None
    return kept if kept.reason or (kept.resources and kept.resources.entries) else None
