"""The C++ of docs/guide/best-json.md, compiled: it launches what `flow.step` does, of each kind of kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from lbmtune.backend.protocol import Binary
from lbmtune.catalogue.families.rules import broken
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.describe import describe_kernel, describe_storage
from lbmtune.codegen.program import Launch, Program
from lbmtune.codegen.render import render, render_single
from lbmtune.records import Resources
from lbmtune.records.best_json.kernel import Kernel, LaunchGeometry
from lbmtune.runtime import Simulation
from tests.shim.device import COMPILER, HostDevice
from tests.support.kernels.kernel_kinds import KINDS
from tests.support.paths import ROOT

pytestmark = pytest.mark.landing  # tests share a program that takes long to compile

DOCS = ROOT / "docs" / "guide" / "best-json.md"
CHANGED_OMEGA = 1.1
Call = tuple[str, ...]
"""A launch: text and entry, grid, block, shared bytes, mode, then arguments, each as where it points or what it is."""


@dataclass
class Recorder(HostDevice):
    """A device that notes launches; one that depends on others is as plain as it may be."""

    calls: list[Call] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    simulation: Simulation | None = None

    def load(self, program: Program, binary: Binary) -> Any:
        self.texts.append(program.source)
        return _Noted(self, len(self.texts) - 1)

    def said(self, launch: Launch, value: Any) -> str:
        """Where an array of one of the buffers begins, in bytes behind the buffer; a number as it is."""
        if not isinstance(value, np.ndarray) or not value.ndim:
            return f"{value.dtype}:{float(value):.9g}"
        for name, buffer in _buffers_of(self.simulation).items():
            behind = value.ctypes.data - buffer.ctypes.data
            if 0 <= behind < buffer.nbytes:
                return f"{name}+{behind}"
        raise AssertionError(f"{launch.entry} takes an array that is no buffer")


@dataclass
class _Noted:
    device: Recorder
    text: int

    def recorded(self, run: Callable[[], None]) -> Callable[[], None]:
        return run

    def launch(self, launch: Launch, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        shape = (f"{self.text}:{launch.entry}", str(grid), str(launch.block), str(launch.shared_bytes), launch.mode)
        self.device.calls.append((*shape, *(self.device.said(launch, value) for value in arguments)))


def _buffers_of(simulation: Simulation | None) -> dict[str, Any]:
    """By their names in the file; words that every launch gets anew are not among them."""
    assert simulation
    found = {**simulation.buffers, **simulation.outputs, **simulation._others}
    found |= {name: value for _, _, arguments in _all_bound(simulation) for name, value in arguments}
    return found


def _all_bound(simulation: Simulation) -> list[Any]:
    """Launches with their words of flags, by name."""
    bound = [one for step in simulation._plan for one in step]
    words = ("flags", "moving")
    return [
        (launch, grid, [(n, v) for n, v in zip(launch.arguments, values, strict=True) if n in words])
        for launch, grid, values in bound
    ]


SCHEDULE = (1, 8, 20000)
"""Time steps of each call; before the last one rates change. Of kernels that do not last on chip, 11."""


def by_runtime(program: Program) -> list[Call]:
    """The launches of a flow that is stepped."""
    device = Recorder()
    single = render_single(program)
    nothing = Binary(b"", "", Resources())
    found = Simulation(program, nothing, device, single=(lambda: (single, nothing)) if single else None)
    device.simulation = found
    for steps in schedule(program):
        if steps == schedule(program)[-1]:
            found.change_case(replace(found.case, relaxation_rate=CHANGED_OMEGA))
        found.step(steps)
    return device.calls


def schedule(program: Program) -> tuple[int, ...]:
    return SCHEDULE if program.persistent else (*SCHEDULE[:-1], 11)


def main_of(program: Program, kernel: Kernel) -> str:
    """A solver that has read the file: it fills the structures of the sample from nothing but the file."""
    lines = ["void solve() {", "    Kernel kernel;", f"    kernel.steps = {kernel.steps};"]
    lines.append(f"    kernel.keeps_roles = {str(kernel.keeps_roles).lower()};")
    for name in ("period", "opening"):
        lines += [f"    kernel.{name} = {{{', '.join(_step(0, step, kernel) for step in getattr(kernel, name))}}};"]
    if kernel.single:
        lines.append(f"    kernel.single = {_step(1, kernel.single.launches, kernel)};")
    places = {buffer.name: n << 40 for n, buffer in zip(count(1), kernel.buffers, strict=False)}
    size = {buffer.name: buffer.bytes // buffer.elements for buffer in kernel.buffers}
    for name in kernel.slots:
        start = program.slot_starts(program.case.domain)[name]  # the formula is looked at elsewhere
        places[name] = places["f0"] + start * size["f0"]
    for name, place in places.items():
        lines.append(f'    kernel.values["{name}"] = {place}ull;')
    for name, argument in kernel.arguments.items():
        lines.append(f'    kernel.values["{name}"] = bits<{_C[argument.type]}>({argument.value!r});')
    names = ", ".join(f'"{buffer.name}"' for buffer in kernel.buffers)
    lines.append(f"    buffers = {{{names}}};")
    lines.append("    for (const Step& step : kernel.period) prepare(step);")
    lines.append("    for (const Step& step : kernel.opening) prepare(step);")
    lines.append("    prepare(kernel.single);")
    for steps in schedule(program):
        if steps == schedule(program)[-1]:
            lines.append(f'    kernel.values["omega"] = bits<{_C[kernel.arguments["omega"].type]}>({CHANGED_OMEGA});')
            lines.append("    kernel.opened = false;")
        lines.append(f"    run(kernel, {steps});")
    return "\n".join((*lines, "}"))


_C = {"int32": "int", "float32": "float", "float64": "double"}


def _step(text: int, launches: Sequence[LaunchGeometry], kernel: Kernel) -> str:
    return f"Step{{{', '.join(_launch(text, one, kernel) for one in launches)}}}"


def _launch(text: int, launch: LaunchGeometry, kernel: Kernel) -> str:
    types = {name: argument.type for name, argument in kernel.arguments.items()}
    kinds = "".join({"int32": "i", "float32": "f", "float64": "d"}.get(types.get(n, ""), "p") for n in launch.arguments)
    names = ", ".join(f'"{name}"' for name in launch.arguments)
    grid, block = (", ".join(map(str, one)) for one in (launch.grid, launch.block))
    entry = f'new CUfunc_st{{"{text}:{launch.entry}", "{kinds}"}}'
    return f'Launch{{{entry}, {{{names}}}, {{{grid}}}, {{{block}}}, {launch.shared_bytes}, "{launch.mode}"}}'


def formulas(kernel: Kernel) -> list[str]:
    """Of grids, lengths of buffers and starts of slots."""
    launches = [launch for step in (*kernel.period, *kernel.opening) for launch in step]
    launches += kernel.single.launches if kernel.single else ()
    lengths = [buffer.elements_formula for buffer in kernel.buffers]
    return [formula for launch in launches for formula in launch.grid_formula] + lengths + [*kernel.slots.values()]


def printing(program: Program, kernel: Kernel) -> str:
    """C++ that prints what the formulas of a file come to on the domain of the program."""
    known = [f"{name} = {n}" for name, n in zip(("nx", "ny", "nz"), program.case.domain, strict=True)]
    known += [
        f"{name} = {int(kernel.arguments[name].value)}" for name in ("sites", "nodes") if name in kernel.arguments
    ]
    known += describe_storage(program).extents
    lines = [f"    const long long {one};" for one in known]
    lines += [f'    printf("%lld\\n", (long long)({formula}));' for formula in formulas(kernel)]
    return "\n".join(lines)


DEVICE = HostDevice.limits


def domains(program: Program) -> list[Case]:
    """Cases like that of a program on its domain, and on those that have a few cells more or less along an axis."""
    case, extents = program.case, list(program.case.domain)
    tried = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 63, 65, 72, 128, 256, 65536)
    changed = [(axis, n) for axis in range(3) for n in tried]
    return [case, *(replace(case, domain=(*extents[:axis], n, *extents[axis + 1 :])) for axis, n in changed)]


def fitting(program: Program) -> str:
    """C++ that prints for each of the domains whether it fits by the file and the function of the sample."""
    rules, lines = describe_kernel(program, limits=DEVICE).domain, list[str]()
    assert rules
    for case in domains(program):
        stored = program.config.stored_extents(case)
        extents = zip(("nx", "ny", "nz", "NX", "NY", "NZ"), (*case.domain, *stored[:3]), strict=True)
        known = " ".join(f"const long long {name} = {n};" for name, n in extents)
        of_extents = zip(("nx", "ny", "nz"), rules.multiple, rules.least, rules.most, strict=True)
        found = [", ".join(map(str, one)) for one in of_extents]
        for limit in rules.limits:
            many = DEVICE.multiprocessors if limit.per_multiprocessor else 1
            most = -1 if limit.most is None else limit.most * many
            found.append(f"{limit.value}, {limit.multiple}, {limit.least}, {most}")
        conditions = ", ".join(f"{{{one}}}" for one in found)
        lines.append(f'    {{ {known} puts(fits({{{conditions}}}) ? "fits" : "no"); }}')
    return "\n".join(lines)


DRIVER = r"""
// as much of the driver as the sample asks for; launches are printed
#include <cstdint>
typedef unsigned long long CUdeviceptr;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
enum CUfunction_attribute { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum CUlaunchAttributeID {
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};
union CUlaunchAttributeValue { char pad[64]; int cooperative; int programmaticStreamSerializationAllowed; };
struct CUlaunchAttribute { CUlaunchAttributeID id; char pad[4]; CUlaunchAttributeValue value; };
struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute* attrs;
    unsigned numAttrs;
};
int cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
int cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra);
"""
DRIVER_BODY = r"""
#include <cstdio>
#include <cstring>
struct CUfunc_st { std::string name, kinds; int shared = 0; };
std::vector<std::string> buffers;
int cuFuncSetAttribute(CUfunction function, CUfunction_attribute, int value) { function->shared = value; return 0; }
int cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction function, void** arguments, void**) {
    const char* mode = "plain";
    if (c->numAttrs) {
        const bool cooperative = c->attrs->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs->value.cooperative;
        mode = cooperative ? "cooperative" : c->attrs->value.programmaticStreamSerializationAllowed ? "dependent" : "";
    }
    if (function->shared != int(c->sharedMemBytes)) mode = "not prepared";
    printf("%s|(%u, %u, %u)|(%u, %u, %u)|%u|%s", function->name.c_str(), c->gridDimX, c->gridDimY, c->gridDimZ,
           c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes, mode);
    for (size_t n = 0; n < function->kinds.size(); ++n) {
        std::uint64_t place; int number; float real; double precise;
        switch (function->kinds[n]) {
            case 'p':
                memcpy(&place, arguments[n], 8);
                printf("|%s+%llu", buffers.at((place >> 40) - 1).c_str(), place & ((1ull << 40) - 1));
                break;
            case 'i': memcpy(&number, arguments[n], 4); printf("|int32:%.9g", double(number)); break;
            case 'f': memcpy(&real, arguments[n], 4); printf("|float32:%.9g", double(real)); break;
            default: memcpy(&precise, arguments[n], 8); printf("|float64:%.9g", precise);
        }
    }
    printf("\n");
    return 0;
}
template <class Type> std::uint64_t bits(Type value) {
    std::uint64_t found = 0;
    memcpy(&found, &value, sizeof value);
    return found;
}
"""


def sample() -> str:
    """The C++ of the page."""
    return DOCS.read_text().split("```cpp\n")[1].split("```")[0]


Answers = dict[str, list[str]]


@pytest.fixture(scope="module")
def of_sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Answers, Answers, Answers]:
    """Of each kind, the launches of the sample, what the formulas of its file come to, and which domains fit."""
    folder = tmp_path_factory.mktemp("sample")
    (folder / "cuda.h").write_text(DRIVER)
    found = [(program, describe_kernel(program)) for program in (render(*kind) for kind in KINDS.values())]
    parts = [
        f"{main_of(*one)}\nvoid formulas() {{\n{printing(*one)}\n}}\nvoid domains() {{\n{fitting(one[0])}\n}}"
        for one in found
    ]
    spaces = [f"namespace kind_{n} {{\n{part}\n}}" for n, part in enumerate(parts)]
    parts_of = ("solve", "formulas", "domains")
    calls = [
        f'    puts("{"--" if k else "=="}"); kind_{n}::{part}();'
        for n in range(len(found))
        for k, part in enumerate(parts_of)
    ]
    (folder / "solver.cpp").write_text("\n".join((sample(), DRIVER_BODY, *spaces, "int main() {", *calls, "}")))
    command = [COMPILER, "-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-I", folder]
    subprocess.run([*map(str, command), "-o", folder / "solver", folder / "solver.cpp"], check=True)
    printed = subprocess.run([folder / "solver"], capture_output=True, text=True, check=True).stdout
    every = [part.strip().split("\n--\n") for part in printed.split("==\n")[1:]]
    launches, values, fitted = (
        {name: part[k].split("\n") for name, part in zip(KINDS, every, strict=True)} for k in range(3)
    )
    return launches, values, fitted


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("kind", KINDS)
def test_a_solver_in_cpp_launches_what_a_flow_does(kind: str, of_sample: tuple[Answers, ...]) -> None:
    expected = by_runtime(render(*KINDS[kind]))
    assert of_sample[0][kind] == ["|".join(call) for call in expected]
    assert len(expected) >= 3


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("kind", KINDS)
def test_formulas_in_c_hold_for_every_kind_of_kernel(kind: str, of_sample: tuple[Answers, ...]) -> None:
    """Grids, lengths of buffers and starts of slots."""
    program = render(*KINDS[kind])
    single, domain = render_single(program), program.case.domain
    steps = [(program, step) for step in (*program.period, *program.prologue)]
    steps += [(single, step) for step in single.period] if single else []
    grids = [n for whose, step in steps for launch in step for n in whose.grid(launch, domain)]
    lengths = {name: program.buffer_elements(domain) for name in program.buffers()}
    lengths |= program.other_buffers(domain)
    buffers = [lengths[buffer.name] for buffer in describe_kernel(program).buffers]
    assert list(map(int, of_sample[1][kind])) == [*grids, *buffers, *program.slot_starts(domain).values()]


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler (g++)")
@pytest.mark.parametrize("kind", KINDS)
def test_a_solver_in_cpp_takes_the_domains_that_the_rules_take(kind: str, of_sample: tuple[Answers, ...]) -> None:
    program = render(*KINDS[kind])
    device = replace(DEVICE, memory_bytes=2**63)
    expected = ["no" if broken(case, program.config, device) else "fits" for case in domains(program)]
    assert of_sample[2][kind] == expected
    assert {*expected} == ({"fits", "no"} if kind != "sites listed" else {"fits"})


def test_every_name_in_the_file_is_told_on_the_page() -> None:
    """Buffers, modes, and what a kernel has besides its launches."""
    page = DOCS.read_text()
    for case, config in KINDS.values():
        kernel = describe_kernel(render(case, config))
        launches = [one for step in (*kernel.period, *kernel.opening) for one in step]
        words = {buffer.name for buffer in kernel.buffers} | {one.mode for one in launches}
        words |= {name for name in kernel.slots if not name.startswith("slot_")}
        assert {word for word in words if f"`{word}`" not in page} == set()
    for name in ("single", "opening", "keeps_roles", "slots", "max_elements", "steps", "types", "domain"):
        assert f"kernel.{name}" in page
