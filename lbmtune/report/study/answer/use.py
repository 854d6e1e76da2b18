"""Ways to use a kernel of a study: texts for Python, C++, C and the command line, each to be copied whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.problem.case import Case
from lbmtune.printable import plain
from lbmtune.records import Trial
from lbmtune.records.study import StudyRecord
from lbmtune.report.study.answer.beside import differs, fastest_sustained
from lbmtune.report.study.answer.words import device_option, device_words, words
from lbmtune.units import format_mlups

_NVCC = "nvcc -std=c++17 -ftz=true -prec-div=false -arch=native"
_IMPLEMENTATION = "#define LBM_IMPLEMENTATION"
_IMPLEMENTED = f"""printf '{_IMPLEMENTATION}\\n#include "lbm.h"\\n' > """


class _Build(NamedTuple):
    """How programs around a kernel of a backend are built.

    c, cpp: commands; file: of the program in C++; head: its first lines; notes: what to read before, by language.
    """

    c: Sequence[str]
    cpp: Sequence[str]
    file: str
    head: Sequence[str]
    notes: Mapping[str, str]


_OBJECT = (
    "The export writes lbm_kernel.o, too: object code for the processors of the machine that exports; --target "
    "x86-64-v3 or x86-64-v4 names others."
)
_ON_GPU = "Fields may lie on the device, and the last argument of {} is your stream."
_BUILDS = {
    "cuda": _Build(
        c=[
            f"{_IMPLEMENTED}lbm.cu &&",
            f"{_NVCC} -c lbm.cu && cc -c flow.c && nvcc -o flow flow.o lbm.o && ./flow",
        ],
        cpp=[f"{_NVCC} -o flow flow.cu && ./flow"],
        file="flow.cu",
        head=[_IMPLEMENTATION],
        notes={"C++": _ON_GPU.format("Solver"), "C": _ON_GPU.format("lbm_create")},
    ),
    "cpu": _Build(  # the implementation is compiled as C
        c=[f"{_IMPLEMENTED}lbm.c &&", "gcc -O2 -fopenmp -o flow flow.c lbm.c lbm_kernel.o -lm && ./flow"],
        cpp=[
            f"{_IMPLEMENTED}lbm.c && gcc -O2 -fopenmp -c lbm.c &&",
            "g++ -O2 -fopenmp -o flow flow.cpp lbm.o lbm_kernel.o && ./flow",
        ],
        file="flow.cpp",
        head=[],
        notes={"C++": _OBJECT, "C": _OBJECT},
    ),
}
_BEGINS = {"box": "with Taylor-Green vortices"}
_SOLVER = (
    "In a solver of yours: lbm.h keeps the lattices; density, velocity and populations go in and out as arrays, solid "
    "cells as a byte each (argument {solid}); {faces}, as in this study; other domains are taken, or refused with the "
    "reason."
)
_SOLID = {"C++": "solid of Solver", "C": "solid of lbm_create, the first NULL"}
BEST = "best.json"
"""The file that texts read."""
_STEPS = 100
"""Least time steps that the programs take."""


_OWN = """lbmtune export . --format defines -o best.h    # macros
lbmtune export . --format flags -o best.flags  # or options of a compiler
"""
"""For a kernel that the user has: only its best values are new."""


class Next(NamedTuple):
    """A step to take. command: whole, to be run in the folder of the study."""

    reason: str
    command: str


class Tab(NamedTuple):
    """A way to use a kernel. runs: program that takes the text; text: whole, with the case; note: to read before."""

    name: str
    runs: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Used:
    """The kernel of a study that texts use."""

    study: StudyRecord
    trial: Trial

    @property
    def steps(self) -> int:
        """Return the time steps of a launch."""
        return self.trial.kernel_config.fused_steps

    @property
    def name(self) -> str:
        """Return the kernel in words, with its speed: over seconds, if that is another one than in bursts."""
        unit = self.study.header.spec.case.speed_unit
        run = self.trial.sustained if differs(self.trial) or self.study.overtaken else None
        speed = f"{format_mlups(run.mlups if run else self.trial.mlups or 0.0)} {unit}{' sustained' if run else ''}"
        return f"trial {self.trial.number}, {words(self.trial.kernel_config)}: {speed}"


def used(study: StudyRecord) -> Used | None:
    """Return the kernel that texts use: the winner; None if there is none."""
    return Used(study, study.ranked[0]) if study.ranked else None


def profiling(study: StudyRecord) -> str:
    """Return the command that measures where the time of the winner goes."""
    return f"lbmtune profile {BEST} --device {device_option(study)} --output profile.html"


def tabs(one: Used) -> tuple[Tab, ...]:
    """Return the ways to use a kernel. They run in a folder with its file."""
    if one.study.header.spec.kernel:
        return (Tab("C", "sh", _OWN),)
    return (
        Tab("Python", "python", _python(one)),
        Tab("C++", "sh", _cpp(one), _note(one, "C++")),
        Tab("C", "sh", _c(one), _note(one, "C")),
        Tab("Command line", "sh", _command_line(one)),
    )


def _note(one: Used, language: str) -> str:
    """Say how a solver of the reader meets the kernel."""
    case = one.study.header.spec.case
    met = _SOLVER.format(solid=_SOLID[language], faces=_faces(case))
    return f"{met} {_BUILDS[one.study.header.backend].notes[language]}"


def _faces(case: Case) -> str:
    """Name the faces of a case: those of an axis once if both are alike."""
    if not case.walled:
        return "all faces are periodic"
    pairs = [(axis, case.faces[2 * n], case.faces[2 * n + 1]) for n, axis in enumerate("xyz")]
    named = [f"{axis} {low}" if low == high else f"{axis}- {low}, {axis}+ {high}" for axis, low, high in pairs]
    return f"faces are {', '.join(named)}"


def over_seconds(study: StudyRecord) -> Next | None:
    """Say how to get the kernel that leads over seconds without a pause; None if the winner does."""
    other = None if not study.ranked or study.header.spec.kernel else fastest_sustained(study)
    if other is None or other.sustained is None:
        return None
    speed = f"{format_mlups(other.sustained.mlups)} {study.header.spec.case.speed_unit}"
    reason = f"For long runs trial {other.number} is faster, {speed} sustained. In the folder of the study "
    reason += "this writes its file, for use in place of best.json:"
    return Next(reason, f"lbmtune export . --trial {other.number} --output trial-{other.number}.json")


def _whole(one: Used, mark: str = "#") -> str:
    """Say of a kernel of several steps which numbers of steps are fastest."""
    return f"  {mark} multiples of {one.steps} are fastest: a launch does {one.steps} steps" if one.steps > 1 else ""


def _steps(one: Used) -> int:
    """Return time steps that fill whole launches."""
    return -(-_STEPS // one.steps) * one.steps


def _measured(one: Used) -> str:
    """Say which speed a program is to be compared with: sustained, if that is another one than in bursts."""
    burst, run, threads = one.trial.mlups or 0.0, one.trial.sustained, one.trial.config.get("threads")
    both = run and (differs(one.trial) or one.study.overtaken)
    speed = f"{format_mlups(run.mlups)} sustained, {format_mlups(burst)} in bursts," if run and both else ""
    counted = f", {threads} thread{'s' * (threads != 1)}" if threads else ""
    return f"the study measured {speed or format_mlups(burst)} on {plain(device_words(one.study))}{counted}"


def _python(one: Used) -> str:
    case, steps = one.study.header.spec.case, _steps(one)
    given = [("domain", case.domain), ("relaxation_rate", case.relaxation_rate)]
    given += [("force", case.force)] if case.forced else []
    given += [("wall_velocity", case.wall_velocity)] if case.moving else []
    return (
        "import lbmtune\n\n"
        f'flow = lbmtune.load("{BEST}", {", ".join(f"{name}={value!r}" for name, value in given)})\n'
        f"# it begins {_BEGINS.get(case.flow, 'at rest')}; flow.initialise(density, velocity) sets your own state\n"
        f"flow.step({steps}){_whole(one)}\n"
        "density, velocity = flow.macroscopic()  # (nz, ny, nx) and (3, nz, ny, nx), lattice units\n"
        "print(density.mean(), abs(velocity).max())\n"
        f"speed = flow.case.fluid_sites / flow.time_per_step_s({steps}) / 1e6\n"
        f'print(f"{{speed:,.0f}} MLUPS; {_measured(one)}")\n'
    )


def _command_line(one: Used) -> str:
    return (
        f"lbmtune explain {BEST}   # legality, bytes, limits; runs nothing\n"
        f"lbmtune measure {BEST} --device {device_option(one.study)}   # verify, then time, on this machine\n"
        f"{profiling(one.study)}   # losses with counters\n"
        "lbmtune report .   # this page again\n"
    )


def _cpp(one: Used) -> str:
    case, steps, build = one.study.header.spec.case, _steps(one), _BUILDS[one.study.header.backend]
    solid = f"    std::vector<unsigned char> solid(cells);  // 1 where {plain(case.geometry)} is solid"
    program = [
        *build.head,
        '#include "lbm.h"',
        "#include <algorithm>",
        "#include <chrono>",
        "#include <cmath>",
        "#include <cstdio>",
        "#include <vector>",
        "",
        "int main() {",
        *_extents(case, "std::size_t"),
        *([solid] if case.geometry else []),
        "    std::vector<lbm::real> density(cells, 1), velocity(3 * cells, 0);",
        *start(case, "std::size_t"),
        f"    lbm::Solver flow(nx, ny, nz{', solid.data()' if case.geometry else ''});",
        *(f"    flow.set_{name}({values});" for name, values in _settings(case)),
        "    flow.initialise(density.data(), velocity.data());",
        f"    flow.step({steps});{_whole(one, '//')}",
        "    flow.macroscopics(density.data(), velocity.data());",
        "    double mass = 0, fastest = 0;",
        "    for (auto value : density) mass += value;",
        "    for (auto value : velocity) fastest = std::max(fastest, std::fabs(double(value)));",
        '    std::printf("%g %g\\n", mass / cells, fastest);',
        "    flow.synchronize();",
        "    const auto begin = std::chrono::steady_clock::now();",
        f"    flow.step({steps});",
        "    flow.synchronize();",
        "    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;",
        f'    std::printf("%.0f MLUPS; {_measured(one)}\\n", {steps}e-6 * cells / seconds.count());',
        "}",
    ]
    return _script(build.file, program, build.cpp, one)


def _c(one: Used) -> str:
    case, steps = one.study.header.spec.case, _steps(one)
    solid = f"    unsigned char *solid = calloc(cells, 1);  // 1 where {plain(case.geometry)} is solid"
    program = [
        '#include "lbm.h"',
        "#include <math.h>",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <time.h>",
        "",
        "int main(void) {",
        *_extents(case, "size_t"),
        *([solid] if case.geometry else []),
        "    lbm_real *density = malloc(cells * sizeof *density), *velocity = calloc(3 * cells, sizeof *velocity);",
        *(start(case, "size_t") or ["    for (size_t i = 0; i < cells; ++i) density[i] = 1;"]),
        "    lbm_solver *flow;",
        f"    if (lbm_create(&flow, nx, ny, nz, {'solid' if case.geometry else 'NULL'}, NULL) != LBM_OK) {{",
        '        fprintf(stderr, "%s\\n", lbm_message());',
        "        return 1;",
        "    }",
        *(f"    lbm_set_{name}(flow, {values});" for name, values in _settings(case)),
        "    lbm_initialise(flow, density, velocity);",
        f"    lbm_step(flow, {steps});{_whole(one, '//')}",
        "    if (lbm_macroscopics(flow, density, velocity) != LBM_OK) return 1;",
        "    double mass = 0, fastest = 0;",
        "    for (size_t i = 0; i < cells; ++i) mass += density[i];",
        "    for (size_t i = 0; i < 3 * cells; ++i) fastest = fmax(fastest, fabs(velocity[i]));",
        '    printf("%g %g\\n", mass / cells, fastest);',
        "    struct timespec begin, end;",
        "    lbm_synchronize(flow);",
        "    timespec_get(&begin, TIME_UTC);",
        f"    lbm_step(flow, {steps});",
        "    lbm_synchronize(flow);",
        "    timespec_get(&end, TIME_UTC);",
        "    double seconds = (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec);",
        f'    printf("%.0f MLUPS; {_measured(one)}\\n", {steps}e-6 * cells / seconds);',
        "    lbm_destroy(flow);",
        "    return 0;",
        "}",
    ]
    return _script("flow.c", program, _BUILDS[one.study.header.backend].c, one)


def start(case: Case, size: str) -> list[str]:
    """Return lines of C and C++ that fill `density` and `velocity` as `lbmtune.load` begins: vortices, or rest."""
    if case.flow != "box":
        return []
    (nx, ny, nz), speed, ratio = case.domain, case.velocity_scale, case.domain[1] / case.domain[0]
    share_x, share_y = (1.0 if nz == 1 else nz**2 / (nz**2 + n**2) for n in (nx, ny))
    return [
        f"    for ({size} i = 0; i < cells; ++i) {{  // Taylor-Green vortices, as in Python",
        "        const double turn = 6.283185307179586, z = turn * (i / nx / ny) / nz;",
        "        const double x = turn * (i % nx) / nx, y = turn * (i / nx % ny) / ny;",
        f"        const double along_x = cos(2 * x) * (1 + {share_x!r} * cos(2 * z));",
        f"        const double along_y = {ratio**2!r} * cos(2 * y) * (1 + {share_y!r} * cos(2 * z));",
        f"        density[i] = 1 + 3 * {speed!r} * {speed!r} / 8 * (along_x + along_y);",
        f"        velocity[i] = {speed!r} * sin(x) * cos(y) * cos(z);",
        f"        velocity[cells + i] = {-speed * ratio!r} * cos(x) * sin(y) * cos(z);",
        "    }",
    ]


def _extents(case: Case, size: str) -> tuple[str, str]:
    nx, ny, nz = case.domain
    return (
        f"    const int nx = {nx}, ny = {ny}, nz = {nz};",
        f"    const {size} cells = ({size})nx * ny * nz;",
    )


def _settings(case: Case) -> list[tuple[str, str]]:
    """Return what a solver of the case sets before it begins: name and values."""
    found: list[tuple[str, tuple[float, ...]]] = [("relaxation_rate", (case.relaxation_rate,))]
    found += [("force", case.force)] if case.forced else []
    found += [("wall_velocity", case.wall_velocity)] if case.moving else []
    return [(name, ", ".join(map(repr, values))) for name, values in found]


def _script(file: str, program: Sequence[str], build: Sequence[str], one: Used) -> str:
    """Return a shell script that exports the solver, writes a program, builds and runs it."""
    export = f"lbmtune export {BEST} --format {BACKENDS[one.study.header.backend].header} --name lbm -o lbm.h &&"
    return "\n".join((export, f"cat > {file} <<'END' &&", *program, "END", *build)) + "\n"
