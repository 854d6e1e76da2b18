"""How to use the winner: texts for Python, C++, C and the command line, each to be copied whole."""

from collections.abc import Sequence
from typing import NamedTuple

from lbmtune.catalogue.problem.case import Case
from lbmtune.records.study import StudyRecord

_NVCC = "nvcc -std=c++17 -ftz=true -prec-div=false -arch=native"
_EXPORT = {
    "cuda": "lbmtune export . --format cuda --name lbm -o lbm.h",
    "cpu": "lbmtune export . --format c --name lbm -o lbm.h",
}
"""Commands that write a solver around the kernel, by backend."""
_IMPLEMENTED = """printf '#define LBM_IMPLEMENTATION\\n#include "lbm.h"\\n' > """
_BUILD_C = {
    "cuda": [
        f"{_IMPLEMENTED}lbm.cu",
        f"{_NVCC} -c lbm.cu && cc -c flow.c && nvcc -o flow flow.o lbm.o && ./flow",
    ],
    "cpu": [f"{_IMPLEMENTED}lbm.c", "gcc -O2 -fopenmp -o flow flow.c lbm.c lbm_kernel.o -lm && ./flow"],
}


_OWN = """lbmtune export . --format defines -o best.h    # macros
lbmtune export . --format flags -o best.flags  # or options of a compiler
"""
"""For a kernel that the user has: only its best values are new."""


class Tab(NamedTuple):
    """A way to use a kernel. runs: program that takes the text; text: whole, with the case."""

    name: str
    runs: str
    text: str


def tabs(study: StudyRecord) -> tuple[Tab, ...]:
    """Return the ways to use the winner; none without one. They run in the folder of the study."""
    if not study.ranked:
        return ()
    case = study.header.spec.case
    if study.header.spec.kernel:
        return (Tab("C", "sh", _OWN),)
    lines = Tab("Command line", "sh", _command_line(study))
    cpp = [Tab("C++", "sh", _cpp(case))] if study.header.backend == "cuda" else []
    return (Tab("Python", "python", _python(case)), *cpp, Tab("C", "sh", _c(case, study.header.backend)), lines)


def _python(case: Case) -> str:
    given = [("domain", case.domain), ("relaxation_rate", case.relaxation_rate)]
    given += [("force", case.force)] if case.forced else []
    given += [("wall_velocity", case.wall_velocity)] if case.moving else []
    return (
        "import lbmtune\n\n"
        f'flow = lbmtune.load("best.json", {", ".join(f"{name}={value!r}" for name, value in given)})\n'
        "flow.step(1000)\n"
        "density, velocity = flow.macroscopic()  # (nz, ny, nx) and (3, nz, ny, nx), lattice units\n"
        "print(density.mean(), abs(velocity).max())\n"
    )


def _command_line(study: StudyRecord) -> str:
    on = "cpu" if study.header.backend == "cpu" else "0"
    return (
        "lbmtune explain best.json   # legality, bytes, limits; runs nothing\n"
        f"lbmtune measure best.json --device {on}   # verify, then time, on this machine\n"
        f"lbmtune profile best.json --device {on} --output profile.html   # losses with counters\n"
        "lbmtune report .   # this page again\n"
    )


def _cpp(case: Case) -> str:
    solid = f"    std::vector<unsigned char> solid(cells);  // 1 where {case.geometry} is solid"
    program = [
        "#define LBM_IMPLEMENTATION",
        '#include "lbm.h"',
        "#include <cstdio>",
        "#include <vector>",
        "",
        "int main() {",
        *_extents(case, "std::size_t"),
        *([solid] if case.geometry else []),
        f"    lbm::Solver flow(nx, ny, nz{', solid.data()' if case.geometry else ''});",
        *(f"    flow.set_{name}({values});" for name, values in _settings(case)),
        "    flow.initialise();  // at rest; or arrays of density and velocity",
        "    flow.step(1000);",
        "    std::vector<lbm::real> density(cells), velocity(3 * cells);",
        "    flow.macroscopics(density.data(), velocity.data());",
        '    std::printf("%g %g\\n", density[0], velocity[0]);',
        "}",
    ]
    return _script("flow.cu", program, [f"{_NVCC} -o flow flow.cu && ./flow"], "cuda")


def _c(case: Case, backend: str) -> str:
    solid = f"    unsigned char *solid = calloc(cells, 1);  // 1 where {case.geometry} is solid"
    program = [
        '#include "lbm.h"',
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "",
        "int main(void) {",
        *_extents(case, "size_t"),
        *([solid] if case.geometry else []),
        "    lbm_solver *flow;",
        f"    if (lbm_create(&flow, nx, ny, nz, {'solid' if case.geometry else 'NULL'}, NULL) != LBM_OK) {{",
        '        fprintf(stderr, "%s\\n", lbm_message());',
        "        return 1;",
        "    }",
        *(f"    lbm_set_{name}(flow, {values});" for name, values in _settings(case)),
        "    lbm_initialise(flow, NULL, NULL);  // at rest; or arrays of density and velocity",
        "    lbm_step(flow, 1000);",
        "    lbm_real *density = malloc(cells * sizeof *density), *velocity = malloc(3 * cells * sizeof *velocity);",
        "    if (lbm_macroscopics(flow, density, velocity) != LBM_OK) return 1;",
        '    printf("%g %g\\n", density[0], velocity[0]);',
        "    lbm_destroy(flow);",
        "    return 0;",
        "}",
    ]
    return _script("flow.c", program, _BUILD_C[backend], backend)


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


def _script(file: str, program: Sequence[str], build: Sequence[str], backend: str) -> str:
    """Return a shell script that exports the solver, writes a program, builds and runs it."""
    return "\n".join((_EXPORT[backend], f"cat > {file} <<'END'", *program, "END", *build)) + "\n"
