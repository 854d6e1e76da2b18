"""A device without a GPU: the CUDA text of a program compiled as C++ and run on one CPU thread."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from math import prod
from pathlib import Path
from threading import Lock, get_ident
from types import ModuleType
from typing import Any

import numpy as np

from lbmtune.backend.immediate import HostMemory
from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.rules import Limits
from lbmtune.codegen.cuda.exchange import PIECES, PUT, TAKEN
from lbmtune.codegen.own_program import OwnProgram
from lbmtune.codegen.passes import FACE_ARRAYS, SLOT
from lbmtune.codegen.program import BARRIER, FIRST_PLANE, LAST_PLANE, MACROSCOPICS, SENT_SUMS, STEPS, Launch, Program
from lbmtune.records import Conditions, Environment, Resources
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically
from tests.shim.queues import Host, LateQueue

HEADER = Path(__file__).with_name("cuda_on_host.h")
RUNTIME = HEADER.parent / "runtime"
COMPILER = shutil.which("g++")
# fibers jump from one stack to another, which hardened libraries take for an overrun and end the process
_NOT_HARDENED = "-U_FORTIFY_SOURCE"
_OPTIONS = (_NOT_HARDENED, "-std=c++17", "-fPIC", "-Wall", "-Wno-unused", "-Wno-unknown-pragmas")
_LIBRARY = "-shared"
# a kernel needs the C library alone, which comes with the engine: most of the time went into C++ headers and libraries;
# nor tables for exceptions and names of types; and it runs for less time than the optimiser takes
_OF_A_KERNEL = ("-nostdinc++", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables")
QUICKLY_MADE, QUICK = "-O0", "-O2"
_ONE_THREAD = Lock()
"""Held while what all kernels share is made."""


@cache
def _folder() -> Path:
    folder = tempfile.mkdtemp(prefix="lbmtune-shim-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def compile_on_host(program: Program, level: str = QUICKLY_MADE) -> Binary:
    """A shared object. level: QUICK for thousands of steps. Raises CompileError with the compiler's messages."""
    return compile_text(_source(program, level), level)


def compile_text(source: str, level: str = QUICKLY_MADE) -> Binary:
    """A shared object of a text, from the cache of the tests if an earlier run has compiled it in the same way."""
    with _ONE_THREAD:
        engine = shim_engine()
    told = (str(engine), level, " ".join(_OF_A_KERNEL), source)
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()
    library = engine.with_name(f"{digest[:20]}.so")
    if not library.exists():
        with _ONE_THREAD:
            _precompile_header(level)
        own = f"{os.getpid()}-{get_ident()}"  # another thread may compile the same text
        text, made = _folder() / f"{digest[:20]}-{own}.cpp", library.with_suffix(f".{own}")
        text.write_text(source)
        _compile(made, level, *_OF_A_KERNEL, _LIBRARY, "-nostdlib", text, engine)
        made.replace(library)  # at once: other processes look for it
    return Binary(str(library).encode(), digest, Resources())


def _header(level: str) -> str:
    """The name of what every kernel includes first."""
    return f"{HEADER.stem}{level}.h"


@cache
def _precompile_header(level: str) -> None:
    """Parse once what every kernel includes first."""
    copy = _folder() / _header(level)
    shutil.copyfile(HEADER, copy)
    _compile(copy.with_suffix(".h.gch"), level, *_OF_A_KERNEL, "-x", "c++-header", copy)


@cache
def shim_engine() -> Path:
    """What runs the threads of every kernel."""
    return _kept_library("engine", HEADER.with_suffix(".cpp"), HEADER)


@cache
def shim_runtime() -> Path:
    """As much of the CUDA runtime as exported headers call."""
    return _kept_library("runtime", RUNTIME / "cuda_runtime.cpp", RUNTIME / "cuda_runtime.h", linked=shim_engine())


def _kept_library(name: str, source: Path, header: Path, linked: Path | None = None) -> Path:
    """A library that is kept, so that processes and later runs have the same one."""
    told = " ".join(_OPTIONS), compiler_version(), source.read_text(), header.read_text(), str(linked)
    digest = hashlib.sha256("\0".join(told).encode()).hexdigest()
    library = cache_folder("shim") / f"{name}-{digest[:20]}.so"
    if not library.exists():
        made = _folder() / library.name
        _compile(made, "-O2", _LIBRARY, source, *([linked, f"-Wl,-rpath,{linked.parent}"] if linked else []))
        write_atomically(library, made.read_bytes())
    return library


@cache
def compiler_version() -> str:
    return subprocess.run([str(COMPILER), "--version"], capture_output=True, check=True, text=True).stdout


def _compile(library: Path, *options: str | Path) -> None:
    assert COMPILER
    done = subprocess.run([COMPILER, *_OPTIONS, "-o", library, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(done.stderr)


def _source(program: Program, level: str) -> str:
    """The text itself between the shim and one launcher per entry."""
    steps = (*program.period, *program.with_macroscopics, *program.prologue)
    launches = {launch.entry: launch for step in steps for launch in step}
    entries = "".join(_launcher(program, launch) for launch in launches.values())
    given = _own_macros(program) if isinstance(program, OwnProgram) else ""
    return f'#include "{_header(level)}"\n{given}{program.source}\n{entries}'


def _own_macros(program: OwnProgram) -> str:
    """What NVRTC is told besides the text."""
    given = [option.removeprefix("-D").replace("=", " ", 1) for option in program.options if option.startswith("-D")]
    return "".join(f"#define {one}\n" for one in ("__constant__ static", *given))


def _launcher(program: Program, launch: Launch) -> str:
    """extern "C" void run_<entry>(grid, block, arguments): arguments as an array of pointers to their values."""
    assert isinstance(program.config, CudaConfig)
    if isinstance(program, OwnProgram):
        return _own_launcher(program, launch)
    together = launch.mode == "cooperative"
    talks = together or program.config.family == "temporal-blocking" or "__syncthreads" in program.source
    fibers = launch.over == "cells" and (program.config.cells_per_thread > 1 or talks)
    types = [_type(name) for name in launch.arguments]
    values = ", ".join(f"*static_cast<{kind}*>(values[{n}])" for n, kind in enumerate(types))
    entry = launch.entry
    how = "together" if together else "as_fibers" if fibers else "as_loop"
    call = f"call_{entry}, grid, block, values, host::{how}, {launch.shared_bytes}"
    return (
        f"static void call_{entry}(void** values) {{ {entry}({values}); }}\n"
        f'extern "C" size_t run_{entry}(const unsigned* grid, const unsigned* block, void** values) {{\n'
        f"    return host::launch({call});\n}}\n"
    )


def _symbol(entry: str) -> str:
    """A name in C, also of a template's entry."""
    return "run_" + re.sub(r"\W", "_", entry)


def _own_launcher(program: OwnProgram, launch: Launch) -> str:
    """The same for the kernel of a user, whose arguments have the types of their description."""
    kinds = [_OWN_TYPES[one.type] + "*" * one.is_buffer for one in program.kernel.arguments]
    values = ", ".join(f"*static_cast<{kind}*>(values[{n}])" for n, kind in enumerate(kinds))
    symbol = _symbol(launch.entry)
    call = f"call_{symbol}, grid, block, values, host::as_fibers, {launch.shared_bytes}"
    return (
        f"static void call_{symbol}(void** values) {{ {launch.entry}({values}); }}\n"
        f'extern "C" size_t {symbol}(const unsigned* grid, const unsigned* block, void** values) {{\n'
        f"    return host::launch({call});\n}}\n"
    )


_OWN_TYPES = {"float32": "float", "float64": "double", "int32": "int", "uint32": "unsigned", "uint8": "unsigned char"}
_OWN_TYPES |= {"int64": "long long"}


def _type(argument: str) -> str:
    kinds = {"f0": "Stored*", "f1": "Stored*", "links": "Word*", MACROSCOPICS: "Real*", SENT_SUMS: "Real*"}
    kinds |= {TAKEN: "const Word*", PUT: "Word*", **dict.fromkeys((FIRST_PLANE, LAST_PLANE, PIECES), "int")}
    if argument in ("flags", "moving"):
        return "const Word*"
    if argument in ("along", "places", "cells"):
        return "const long long*" if argument == "along" else "const unsigned long long*"
    if argument.startswith(SLOT) or argument in FACE_ARRAYS:
        return "Stored*"
    if argument == BARRIER:
        return "unsigned*"
    if argument.startswith(("wall_at_", "wall_from_")):
        return "const unsigned*"
    if argument in ("wall_share", "wall_links"):
        return "const Real*" if argument == "wall_share" else "int"
    return kinds.get(argument, "int" if argument in ("nx", "ny", "nz", "sites", "nodes", STEPS) else "Real")


class HostExecutable:
    """A loaded shared object."""

    resources = Resources()

    def __init__(self, program: Program, binary: Binary) -> None:
        library = ctypes.CDLL(binary.image.decode())
        self._entries = {name: library[_symbol(name)] for name in program.entries}

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        return run

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        cells = [np.array([a.ctypes.data if isinstance(a, np.ndarray) and a.ndim else a]) for a in arguments]
        pointers = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
        assert prod(launch.block) <= 1024
        assert all(grid), "CUDA refuses a launch without blocks"
        strayed = self._entries[launch.entry]((ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*launch.block), pointers)
        behind = f"bytes of shared memory behind the {launch.shared_bytes} of a block were written, or after its end"
        assert not strayed, f"{strayed} {behind}"


class HostDevice(HostMemory):
    """One CPU thread that stands for a CUDA device. host: holds the work of its queues, and of those of its peers."""

    def __init__(self, host: Host | None = None) -> None:
        self._host = host or Host()

    limits = Limits(
        shared_bytes_per_block=227 << 10,
        shared_bytes_per_multiprocessor=228 << 10,
        multiprocessors=132,
        cooperative=True,
        dependent=True,
        asynchronous=True,
        bulk=True,
    )
    environment = Environment(backend="cuda", device="host", device_id="host", architecture="host")

    @property
    def xp(self) -> ModuleType:
        return np

    def empty(self, elements: int, dtype: str, placing: Any = None) -> Any:
        """Aligned to 256 bytes, as a device allocates."""
        size = np.dtype(dtype).itemsize
        raw = np.empty(elements * size + 512, np.uint8)
        start = -raw.ctypes.data % 256
        return raw[start : start + elements * size].view(dtype)

    def host_empty(self, elements: int, dtype: str) -> Any:
        return self.empty(elements, dtype)

    def load(self, program: Program, binary: Binary) -> HostExecutable:
        return HostExecutable(program, binary)

    def synchronize(self) -> None:
        self._host.synchronize()

    def current(self) -> AbstractContextManager[None]:
        return nullcontext()

    def queue(self, *, first: bool = False) -> LateQueue:
        return self._host.queue()

    def copy(self, target: Any, source: Any) -> None:
        target[...] = source

    def reaches(self, other: HostDevice) -> bool:
        return True

    def recorded_in(self, queue: LateQueue, run: Callable[[], None]) -> Callable[[], None]:
        return run

    def time_s(self, run: Callable[[], None]) -> float:
        raise NotImplementedError("the host shim proves results; it has no speed")

    def slices_s(self, run: Callable[[], None], count: int, look: Callable[[], None]) -> list[float]:
        raise NotImplementedError("the host shim proves results; it has no speed")

    def marked(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()

    def looked_at(self) -> AbstractContextManager[None]:
        return nullcontext()

    def datasheet_bytes_per_s(self) -> float | None:
        return None

    def energy_j(self) -> None:
        return None

    def conditions(self) -> Conditions:
        return Conditions()
