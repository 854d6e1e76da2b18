"""Resources of compiled kernels, kept on disk to rank many kernels on a machine without a GPU."""

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
from lbmtune.errors import DeviceUnavailableError
from lbmtune.process_pool import mapped, pool
from lbmtune.records import Resources
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically

_SHARE = 4
"""Kernels that a process compiles per task."""


class Compiled(msgspec.Struct, frozen=True):
    """Resources of a kernel; None if it could not be compiled, with the reason."""

    resources: Resources | None = None
    reason: str = ""


def compiled_all(case: Case, configs: Sequence[KernelConfig], architecture: str, processes: int) -> Iterator[Compiled]:
    """Yield the resources of kernels in order, compiled by several processes if they are many.

    Raises DeviceUnavailableError without NVRTC.
    """
    nvrtc.version()
    work = partial(compiled, case, architecture)
    if min(processes, len(configs) // _SHARE) < 2:
        yield from map(work, configs)
        return
    with pool(processes) as workers:
        yield from mapped(workers, work, configs, _SHARE)


def compiled(case: Case, architecture: str, config: KernelConfig) -> Compiled:
    """Return the resources of a kernel, from the cache if the same NVRTC compiled its code before.

    Raises DeviceUnavailableError without NVRTC.
    """
    program = render(case, config)
    path = _path(program, architecture)
    if kept := _kept(path):
        return kept
    try:  # not there, or of another version
        result = Compiled(nvrtc.compile_cuda(program, architecture).resources)
    except CompileError as error:
        result = Compiled(reason=str(error))
    write_atomically(path, msgspec.json.encode(result))
    return result


def compiled_before(case: Case, architecture: str, config: KernelConfig) -> Resources | None:
    """Return the resources of a kernel from the cache, without compiling; None if it is not there, or without NVRTC."""
    try:
        kept = _kept(_path(render(case, config), architecture))
    except DeviceUnavailableError:
        return None
    return kept.resources if kept else None


def _path(program: Program, architecture: str) -> Path:
    """Return the file of a program: named by code and options, architecture, NVRTC and the readers of its output.

    Raises DeviceUnavailableError without NVRTC.
    """
    named = "\0".join((program.digest, architecture, ".".join(map(str, nvrtc.version())), _readers()))
    return cache_folder("nvrtc") / f"{hashlib.sha256(named.encode()).hexdigest()[:32]}.json"


@cache
def _readers() -> str:
    """Return the digest of the modules that read a log and a cubin, whose versions may differ in what they find."""
    texts = (Path(str(module.__file__)).read_bytes() for module in (nvrtc, sass))
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def _kept(path: Path) -> Compiled | None:
    """Return what a file holds; None if it is missing or of another version."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=Compiled)
    except (OSError, msgspec.DecodeError):
        return None
    return kept if kept.reason or (kept.resources and kept.resources.entries) else None
