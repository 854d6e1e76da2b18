"""Exported headers, compiled for the host shim with as much of the CUDA runtime as they call, and compared."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import solid_in, whole
from lbmtune.catalogue.boundaries.second_order import Walls
from lbmtune.catalogue.config import CpuConfig, CudaConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.render import render
from lbmtune.export import best
from lbmtune.export.cuda_header import cuda_header
from lbmtune.measure.verification import oracle
from lbmtune.measure.verification.reference_states import small_states
from lbmtune.measure.verification.verify import deviation, error_bounds
from lbmtune.records import Verification
from lbmtune.records.best_json.document import Best
from lbmtune.records.store import cache_folder
from lbmtune.records.whole_files import write_atomically
from lbmtune.runtime.states import state_of
from tests.shim.device import COMPILER, RUNTIME, compiler_version, shim_engine, shim_runtime
from tests.support.studies import made_up_records as made

BAD_ARGUMENT, BAD_DOMAIN = 1, 2
"""What functions return that refuse an argument or a domain."""
_OPTIONS = ("-std=c++17", "-fPIC", "-shared", "-U_FORTIFY_SOURCE", "-Wall", "-Wextra", "-Wno-unused", "-Werror")
_INCLUDED = ("algorithm", "cmath", "cstdlib", "cstring", "map", "stdexcept", "stdint.h", "string", "utility", "vector")
"""Of the standard library, by headers."""
_LENIENT = ("-Wno-unknown-pragmas", "-Wno-missing-field-initializers")


def best_of(case: Case, config: CudaConfig | CpuConfig) -> Best:
    """A best.json of a kernel that nobody has measured."""
    study = made.gpu_study(1)
    winner = study.ranked[0]
    program = render(case, config)
    trial = replace(winner, config=config.flat(), key=config.key, source_digest=program.digest, final=None)
    header = replace(study.header, spec=replace(study.header.spec, name="made up", case=case))
    return best(replace(study, header=header, trials=(trial,)))


def compiled(found: Best, folder: Path | None = None, *, level: str = "-O0", behind: str = "") -> ctypes.CDLL:
    """The functions of a header, which are called `made_*`.

    folder: for the library; None: the cache of the tests, if an earlier run has not put it there. behind: more C++.
    """
    text, behind = cuda_header(found, "made", "made.h"), f'#define MADE_IMPLEMENTATION\n#include "made.h"\n{behind}'
    told = (text, behind, level, *_OPTIONS, *_LENIENT, str(shim_runtime()))
    library = (folder or cache_folder("shim")) / f"{hashlib.sha256('|'.join(told).encode()).hexdigest()[:20]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as made:
            (Path(made) / "made.h").write_text(text)
            (Path(made) / "made.cpp").write_text(behind)
            built = library.with_suffix(f".{os.getpid()}")
            build(Path(made) / "made.cpp", built, "made", *_OPTIONS, *_LENIENT, level)
            built.replace(library)  # at once: other processes look for it
    return declared(ctypes.CDLL(str(library)))


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    library.made_message.restype = ctypes.c_char_p
    library.made_steps_done.restype = ctypes.c_longlong
    library.made_step.argtypes = ctypes.c_void_p, ctypes.c_longlong
    for name, numbers in (("relaxation_rate", 1), ("force", 3), ("wall_velocity", 3)):
        getattr(library, f"made_set_{name}").argtypes = ctypes.c_void_p, *[ctypes.c_double] * numbers
    return library


def build(source: Path, target: Path, name: str, *options: str) -> None:
    """Compile a text that includes a header, and link it with the shim. name: the one of the header."""
    command = [COMPILER, *options, f"-DSHIM_NAMESPACE={name}", "-I", RUNTIME, "-include", _precompiled(options)]
    command += ["-x", "c++", source, "-x", "none", "-o", target, *linked()]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def linked() -> list[Path | str]:
    """What a program or a library with a header is linked with."""
    return [shim_runtime(), shim_engine(), f"-Wl,-rpath,{shim_engine().parent}"]


def _precompiled(options: Sequence[str]) -> Path:
    """What headers include of the standard library, parsed once; beside it what the compiler makes of that."""
    parsed = [option for option in options if option.startswith(("-f", "-O", "-std", "-U"))]
    text = "".join(f"#include <{name}>\n" for name in _INCLUDED)
    digest = hashlib.sha256("|".join((text, compiler_version(), *parsed)).encode()).hexdigest()
    header = cache_folder("shim") / f"included-{digest[:20]}.h"
    if not header.exists():
        made = header.with_suffix(f".{os.getpid()}.h")
        write_atomically(made, text.encode())
        beside = made.with_name(f"{header.name}.gch.{os.getpid()}")
        subprocess.run([str(COMPILER), *parsed, "-x", "c++-header", made, "-o", beside], check=True)
        beside.replace(header.with_name(f"{header.name}.gch"))
        made.replace(header)  # at once and last: other processes look for it
    return header


def build_program(sources: Sequence[Path], target: Path, name: str, headers: Path, *options: str) -> None:
    """Compile a program whose sources include a header in a folder. options: -DSHIM_AS_LOOP, for example."""
    joined = target.with_suffix(".all.cpp")
    joined.write_text("".join(f'#include "{source}"\n' for source in reversed(sources)))
    build(joined, target, name, "-std=c++17", "-O2", "-U_FORTIFY_SOURCE", "-w", f"-I{headers}", *options)


class RefusedError(Exception):
    """What a function of a header said when it did nothing. status: 1 argument, 2 domain, 3 CUDA."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Exported:
    """A solver of a compiled header on the domain of a case, at its values. queue: the last argument of `create`."""

    def __init__(self, library: ctypes.CDLL, found: Best, case: Case, queue: Any = None) -> None:
        self._library, self.case, self.handle = library, case, ctypes.c_void_p()
        self._real = np.dtype(found.config.computed.dtype)
        self.solid = solid_of(case)
        created = library.made_create(ctypes.byref(self.handle), *case.domain, pointer(self.solid), queue)
        self._check(created)
        self("set_relaxation_rate", case.relaxation_rate)

    def __call__(self, name: str, *arguments: Any) -> None:
        self._check(getattr(self._library, f"made_{name}")(self.handle, *arguments))

    def _check(self, status: int) -> None:
        if status:
            raise RefusedError(status, self._library.made_message().decode())

    def set_populations(self, f: Any) -> None:
        held = np.ascontiguousarray(f, np.float64)
        self("set_populations", pointer(held))

    def populations(self) -> Any:
        found = np.full((self.case.stencil.q, *self.case.domain[::-1]), np.nan)
        self("populations", pointer(found))
        return found

    def initialise(self, density: Any, velocity: Any) -> None:
        held = [None if one is None else np.ascontiguousarray(one, self._real) for one in (density, velocity)]
        self("initialise", *map(pointer, held))

    def macroscopics(self) -> tuple[Any, Any]:
        shape = self.case.domain[::-1]
        density, velocity = np.full(shape, np.nan, self._real), np.full((3, *shape), np.nan, self._real)
        self("macroscopics", pointer(density), pointer(velocity))
        return density, velocity

    @property
    def steps_done(self) -> int:
        return int(self._library.made_steps_done(self.handle))

    def close(self) -> None:
        """Free the memory, which finds writes outside of arrays."""
        self._library.made_destroy(self.handle)


def pointer(array: Any) -> ctypes.c_void_p | None:
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


def solid_of(case: Case) -> Any:
    return solid_in(case, whole(case.domain)).astype(np.uint8) if case.geometry else None


def compared(library: ctypes.CDLL, found: Best, case: Case, at_once: Sequence[int]) -> Verification:
    """The worst deviation of a solver from the oracle, relative to its bound, after each of these numbers of steps.

    Density and velocity are compared as well, and numbered behind the populations.
    """
    config, compared_at = found.config, tuple(accumulate(at_once))
    walls = Walls.IMPLICIT if config.implicit else Walls(case.walls)
    wanted = (0, *compared_at)
    states = dict(zip(wanted, small_states(case, wanted, walls), strict=True))
    kept, solver = state_of(case, config, np), Exported(library, found, case)
    solver.set_populations(states[0])
    worst = []
    for taken, steps in zip(at_once, compared_at, strict=True):
        solver("step", taken)
        bounds = error_bounds(case, config, steps)
        worst.append(deviation(kept, [solver.populations()], states[steps], steps, bounds, whole(case.domain)))
        worst.append(_of_fields(solver, states[steps], case, case.stencil.q * (max(bounds) + config.computed.epsilon)))
    solver.close()
    return max(worst, key=lambda one: one.error / one.bound)


def _of_fields(solver: Exported, state: Any, case: Case, bound: float) -> Verification:
    found = np.concatenate([one.reshape(-1, *case.domain[::-1]) for one in solver.macroscopics()])
    expected = np.concatenate([oracle.density(state)[None], oracle.velocity(state, case)])
    if solver.solid is not None:
        expected = np.where(solver.solid, np.array([1.0, 0, 0, 0]).reshape(4, 1, 1, 1), expected)
    off = np.nan_to_num(abs(found - expected), nan=np.inf)
    field, z, y, x = (int(n) for n in np.unravel_index(int(off.argmax()), off.shape))
    return Verification(
        error=float(off.max()),
        bound=bound,
        worst_cell=(x, y, z),
        worst_direction=case.stencil.q + field,
        worst_steps=0,
        domains=(case.domain,),
    )
