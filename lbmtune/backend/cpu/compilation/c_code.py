"""Kernels in C: compiled by the compiler of the system into shared objects, and called through ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from lbmtune.backend.protocol import Array, Binary, CompileError
from lbmtune.codegen.program import Launch, Program
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Resources
from lbmtune.records.store import CODE, cache_folder, make_cache
from lbmtune.records.whole_files import write_atomically
from lbmtune.scratch import scratch

_COMPILERS = ("cc", "gcc", "clang")
_SHARED = ("-shared", "-fPIC", "-x", "c")


@cache
def c_compiler() -> tuple[str, ...]:
    """Return the command of the compiler: $CC, or the first that is installed. Raises DeviceUnavailableError."""
    asked = shlex.split(os.environ.get("CC", ""))
    for command in [asked] if asked else [[name] for name in _COMPILERS]:
        if path := shutil.which(command[0]):
            return (path, *command[1:])
    raise DeviceUnavailableError(
        f"a kernel in C needs a compiler, and {' or '.join(asked[:1] or _COMPILERS)} is not installed; install one, or "
        "set CC to its command."
    )


def compile_c(program: Program) -> Binary:
    """Compile a text into a shared object in the cache, unless it is there. Raises CompileError."""
    make_cache()
    told = (*_told(), program.digest)
    library = cache_folder(CODE) / f"own_{hashlib.sha256(chr(0).join(told).encode()).hexdigest()[:24]}.so"
    if not library.exists():
        write_atomically(library, _compiled(program.source, program.options))
    _entry(ctypes.CDLL(str(library)), program.entries)
    code = library.read_bytes()
    return Binary(str(library).encode(), hashlib.sha256(code).hexdigest(), Resources(code_bytes=len(code)))


def _compiled(source: str, options: Sequence[str]) -> bytes:
    with scratch() as folder:
        made = folder / "kernel.so"
        # the text comes first: linkers take libraries in the order in which they are needed
        command = [*c_compiler(), *_SHARED, "-", "-o", str(made), "-x", "none", *options]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(done.stderr or f"{command[0]} failed with exit code {done.returncode}")
        return made.read_bytes()


@cache
def _told() -> tuple[str, ...]:
    """Return what besides the text decides on the code: the compiler with its version, and the processor."""
    command = c_compiler()
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout
    return (*command, version, platform.node(), *_SHARED)


def _entry(library: ctypes.CDLL, names: Sequence[str]) -> dict[str, Any]:
    """Return the functions of a library. Raises CompileError for one that is missing."""
    for name in names:
        if not hasattr(library, name):
            raise CompileError(f"the text has no function {name!r} that is not static; check entry")
    return {name: library[name] for name in names}


class SharedObject:
    """A loaded shared object. resources: of its code."""

    def __init__(self, library: ctypes.CDLL, entries: Sequence[str], resources: Resources) -> None:
        self.resources = resources
        self._entries = _entry(library, entries)
        for entry in self._entries.values():
            entry.restype = None
        self._passed: dict[int, tuple[Sequence[Any], list[Any]]] = {}

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Array | int | float]) -> None:  # noqa: ARG002
        """Call the function; it returns when the launch is done.

        What the arguments are in C is kept for each list of them, since to make it may take longer than a small kernel.
        """
        if id(arguments) not in self._passed:
            self._passed[id(arguments)] = arguments, list(map(_in_c, arguments))
        self._entries[launch.entry](*self._passed[id(arguments)][1])

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return `run` itself: launches are not recorded."""
        return run


def load_c(program: Program, binary: Binary, threads: int) -> SharedObject:
    """Load a shared object and set the threads of OpenMP, if it has that."""
    library = ctypes.CDLL(binary.image.decode())
    if hasattr(library, "omp_set_num_threads"):
        library.omp_set_num_threads(ctypes.c_int(threads))
    return SharedObject(library, program.entries, binary.resources)


def _in_c(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
