"""Devices and compilers by name. A backend is a package of its name beside this module; none is imported to start."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from lbmtune.backend.protocol import BackendPackage, Binary, Compiler, Device
from lbmtune.backend.ranks import Rank, rank_of
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.codegen.program import Program
from lbmtune.errors import InputError
from lbmtune.records import Environment


def _package(backend: str) -> BackendPackage:
    found: BackendPackage = import_module(f"lbmtune.backend.{backend}").BACKEND
    return found


def backend_of(spec: str) -> str:
    """Return the backend of a device name: 'cpu', or the index of a GPU such as '0'. Raises InputError."""
    for name in BACKENDS:
        if _package(name).accepts(spec):
            return name
    raise InputError(f"device={spec} is not supported (use cpu, or the index of a GPU: lbmtune devices lists them).")


def default_device(backend: str) -> str:
    """Return the name of the device of a backend that is taken unless another one is named."""
    return _package(backend).default_device


def open_device(spec: str) -> Device:
    """Open a device in this process. Raises InputError, DeviceUnavailableError."""
    return _package(backend_of(spec)).open_device(spec)


def compiler_for(environment: Environment) -> Compiler:
    """Return the compiler for a device; it can be pickled and run in a process that has no device."""
    return _package(environment.backend).compiler(environment)


def reassembled(environment: Environment, program: Program) -> Iterator[tuple[str, Binary]]:
    """Yield binaries of the same text with fewer optimisations of the assembler, and the name of each way.

    None if the backend has no assembler, or if threads synchronise: slower code may hide a race, and prove nothing.
    Raises CompileError, DeviceUnavailableError.
    """
    if not program.has_sync:
        yield from _package(environment.backend).reassembled(environment, program)


def reports_power(spec: str) -> bool:
    """Return whether this process may read the energy that a device takes. Raises DeviceUnavailableError."""
    return _package(backend_of(spec)).reports_power(spec)


def link(one: str, other: str) -> str:
    """Return the name of the link between two devices of a backend, such as 'NVLink 4, 18 links'."""
    return _package(backend_of(one)).link(one, other)


def this_rank() -> Rank:
    """Return the rank of this process; launchers may let it see one GPU of a host alone. Raises InputError."""
    rank, gpus = rank_of(os.environ), sum(name.isdecimal() for name in available())
    return replace(rank, local=rank.local % gpus) if gpus else rank


def available() -> tuple[str, ...]:
    """Return the names of the devices that can be opened here, in the order of the backends."""
    return tuple(device for name in BACKENDS for device in _package(name).devices())
