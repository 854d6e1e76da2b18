"""Devices and compilers by name. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

from lbmtune.backend.protocol import Binary, Compiler, Device
from lbmtune.codegen.program import Program
from lbmtune.errors import DeviceUnavailableError, InputError
from lbmtune.records import Environment

Backend = Literal["cuda", "cpu"]


def backend_of(spec: str) -> Backend:
    """Which backend a device name belongs to: 'cpu', or the index of a GPU such as '0'. Raises InputError."""
    if spec == "cpu":
        return "cpu"
    if spec.isdecimal():
        return "cuda"
    raise InputError(f"device {spec!r} is neither 'cpu' nor the index of a GPU; lbmtune devices lists what there is.")


def open_device(spec: str) -> Device:
    """Opens a device in this process. Raises InputError, DeviceUnavailableError."""
    if backend_of(spec) == "cpu":
        from lbmtune.backend.cpu import open_cpu

        return open_cpu()
    from lbmtune.backend.cuda import open_cuda

    return open_cuda(int(spec))


def compiler_for(environment: Environment) -> Compiler:
    """The compiler for a device; it can be pickled and run in a process that has no device."""
    if environment.backend == "cpu":
        from lbmtune.backend.cpu import compile_cpu

        return compile_cpu
    from lbmtune.backend.nvrtc import compile_cuda

    return partial(compile_cuda, architecture=environment.architecture)


def reassembled(environment: Environment, program: Program) -> Iterator[tuple[str, Binary]]:
    """The same text assembled with fewer optimisations, where a device has an assembler, and the name of each way.

    None where threads meet: slower code may hide a race, and would prove nothing of the text.
    Raises CompileError, DeviceUnavailableError.
    """
    if environment.backend == "cuda" and not program.has_sync:
        from lbmtune.backend.nvrtc import reassembled as by_nvrtc

        yield from ((f"ptxas {level}", binary) for level, binary in by_nvrtc(program, environment.architecture))


def available() -> tuple[str, ...]:
    """Names of the devices that can be opened here, GPUs first."""
    from lbmtune.backend.cuda import device_count

    try:
        gpus = device_count()
    except DeviceUnavailableError:
        gpus = 0
    return (*map(str, range(gpus)), "cpu")
