"""A C header around the object code of a CPU kernel of a best.json: a solver that others compile and link.

The object has the kernels alone; the header has what launches them, the state and the rules. The template is
kernels/export/object.h.in.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Template
from typing import Any, NamedTuple, cast

from lbmtune.catalogue.backend_records import CpuConfig
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.layouts.layout import arrays
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.program import LIST
from lbmtune.codegen.skeleton import skeleton
from lbmtune.export.c_text import C_TYPES, filled, lines_of
from lbmtune.export.header_launches import INTEGERS, values_of
from lbmtune.export.header_state import index_list
from lbmtune.export.solver_text import cells, check_exportable, check_name, interface, properties, titles
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Kernel, LaunchGeometry

_TABLES = """\
static const Tables the_tables = {NAME}_TABLES;
static inline const Tables *tables(void) {{ return &the_tables; }}"""
_LOOP_TYPE = """\
/* Threads of the caller: call share(work, n) once for each n from 0 to shares - 1, on any threads, and return when all
   have returned. */
typedef void (*{name}_loop)(void (*share)(void *work, int number), void *work, int shares);
"""
_SET_THREADS = """\
/* The threads of loops. Without it: those of OpenMP; with a loop of the caller, those that the kernel was tuned for. */
int {name}_set_threads({name}_solver *solver, int threads);
"""
_HUGE_PAGES: Mapping[str, tuple[str, str]] = {
    "default": ("(size_t)4 << 20", "MADV_HUGEPAGE"),
    "huge": ("1", "MADV_HUGEPAGE"),
    "normal": ("1", "MADV_NOHUGEPAGE"),
}
"""For each kind of pages the bytes from which on memory is advised, and how; by default as NumPy does."""


class Target(NamedTuple):
    """The processors that an object is for.

    features: those without which its code cannot run, by the names of the compilers' __builtin_cpu_supports.
    """

    name: str
    features: Sequence[str]


def kernel_symbols(kernel: Kernel, name: str) -> dict[str, dict[str, str]]:
    """Return the names in the object of the entries of 'kernel' and of 'single', the kernel of left-over steps."""
    return {
        space: {one.entry: _symbol(name, space, one.entry) for one in some}
        for space, some in _spaces(kernel).items()
        if some
    }


def _spaces(kernel: Kernel) -> dict[str, list[LaunchGeometry]]:
    """Return the launches of the kernel and of that for left-over steps, which may have entries of equal names."""
    of_single = [*kernel.single.launches] if kernel.single else []
    return {"kernel": [one for step in kernel.period for one in step], "single": of_single}


def loop_symbols(name: str) -> dict[str, str]:
    """Return the functions of the header that the object calls, by the names that compiled kernels call."""
    return {"get_num_threads": f"{name}_kernel_shares", "numba_parallel_for": f"{name}_kernel_loop"}


def _symbol(name: str, space: str, entry: str) -> str:
    return f"{name}_{space}_{entry}"


def c_header(best: Best, name: str, target: Target, file: str = "solver.h", object_file: str = "kernel.o") -> str:
    """Return the text of the header. file, object_file: names. Raises InputError for a kernel that it cannot hold."""
    check_exportable(best.case, best.kernel.target, "c")
    check_name(name)
    kernel, config = best.kernel, cast("CpuConfig", best.config)
    huge_from, advice = _HUGE_PAGES[config.pages]
    fields = {
        **titles(best, name, file),
        **properties(best),
        **_launches(kernel, name),
        **_buffers(best, config, name),
        "measured_threads": f"{config.threads} thread{'s' * (config.threads > 1)}",
        "threads": config.threads,
        "target": target.name,
        "object": object_file,
        "runs_here": " && ".join(f'__builtin_cpu_supports("{one}")' for one in target.features) or "true",
        "huge_from": huge_from,
        "advice": advice,
        "interface": interface(best, name, **_declared(name)),
        "cells": cells(best, name, "static inline", _TABLES.format(NAME=name.upper())),
        "index_list": index_list(best.storage.links) if best.storage.links else "",
    }
    return filled("object", **fields)


def fortran_module(best: Best, name: str, file: str, object_file: str) -> str:
    """Return the text of a module of Fortran with the functions of the header of a name. file, object_file: names."""
    kind = {"float": "c_float", "double": "c_double"}[C_TYPES[best.config.computed.dtype]]
    text = skeleton("export/module.f90.in")
    directions = len(best.storage.velocities)
    return Template(text).substitute(name=name, file=file, object=object_file, kind=kind, directions=directions)


def _declared(name: str) -> dict[str, str]:
    """Return what the interface says of a CPU."""
    return {
        "types": _LOOP_TYPE.format(name=name),
        "failure": "SYSTEM_ERROR",
        "on_device": "",
        "in_queue": ". loop: the threads of the caller; NULL: those of OpenMP, or one without it.",
        "queue_type": f"{name}_loop ",
        "queue": "loop",
        "more": _SET_THREADS.format(name=name),
        "methods": "",
        "does": "Do",
    }


def _launches(kernel: Kernel, name: str) -> dict[str, str]:
    """Return the declarations of the entries and the statements that call them."""
    spaces, types = _spaces(kernel), _types(kernel)
    declared = dict.fromkeys(
        f"void {_symbol(name, space, one.entry)}({', '.join(types[argument] for argument in one.arguments)});"
        for space, some in spaces.items()
        for one in some
    )
    return {
        "prototypes": "\n".join(declared),
        "launch_step": lines_of(_by_parity(kernel.period, name), 8),
        "launch_single": lines_of((_call(one, name, "single") for one in spaces["single"]), 4),
    }


def _types(kernel: Kernel) -> dict[str, str]:
    """Return the C type of each argument."""
    reals = {name: C_TYPES[one.type] for name, one in kernel.arguments.items() if name not in INTEGERS}
    buffers = {one.name: f"{C_TYPES[one.dtype]} *" for one in kernel.buffers}
    return dict.fromkeys((*INTEGERS, *kernel.slots), "int64_t") | reals | buffers


def _by_parity(steps: Sequence[Sequence[LaunchGeometry]], name: str) -> Iterator[str]:
    for parity, step in enumerate(steps):
        yield f"case {parity}:"
        yield from (f"    {_call(one, name, 'kernel')}" for one in step)
        yield "    break;"


def _call(one: LaunchGeometry, name: str, space: str) -> str:
    return f"{_symbol(name, space, one.entry)}({', '.join(f's->{argument}' for argument in one.arguments)});"


def _buffers(best: Best, config: CpuConfig, name: str) -> dict[str, Any]:
    """Return the members for buffers and scalars, and how they get their memory and their values."""
    kernel = best.kernel
    others = [one for one in kernel.buffers if one.name not in ("f0", "f1")]
    members = [f"{C_TYPES[one.dtype]} *{one.name};" for one in others]
    members += [f"int64_t {slot};" for slot in kernel.slots]
    reals = [name for name in kernel.arguments if name not in INTEGERS]
    names = {one.name for one in others}
    return {
        "buffer_members": lines_of(members, 4),
        "scalar_members": lines_of([f"real {', '.join(reals)};"] if reals else [], 4),
        "most_buffers": len(kernel.buffers) + 2,  # with solid cells and numbers of nodes
        "allocations": lines_of(_allocations(kernel, best.case, config), 4),
        "update": lines_of((f"s->{one} = (real)({value});" for one, value in values_of(reals, best, "s->").items()), 4),
        "make_list": lines_of(_of(name, _NUMBERED) if LIST in names else (), 4),
        "fill": lines_of(_of(name, _first_values(names)), 4),
        "count_nodes": lines_of(_of(name, _COUNTED) if LIST in names else (), 4),
    }


def _allocations(kernel: Kernel, case: Case, config: CpuConfig) -> Iterator[str]:
    touched = arrays(config.memory, case.stencil.q) if config.first_touch == "parallel" else 0
    for one in kernel.buffers:
        kind, parts = C_TYPES[one.dtype], touched if one.name in ("f0", "f1") else 0
        yield f"s->{one.name} = ({kind} *)zeros(s, {one.elements_formula}, sizeof({kind}), {parts});"
        yield f"enough = enough && s->{one.name} != NULL;"
    for slot, start in kernel.slots.items():
        yield f"s->{slot} = {start};"


def _first_values(names: Iterable[str]) -> Iterator[str]:
    if WORDS in names or MOVING_WORDS in names:
        tables = {".flags": WORDS, ".moving_links": MOVING_WORDS}
        given = "".join(f", {field} = s->{one}" for field, one in tables.items() if one in names)
        yield f"if (!status) over_cells((Pass){{.solver = s, .at = flags_at{given}}});"
    if LIST in names:
        yield from _LISTED


def _of(name: str, lines: Iterable[str]) -> list[str]:
    return [line.replace("NAME_", f"{name.upper()}_") for line in lines]


_NUMBERED = (
    "Nodes numbered;",
    "const char *failed = number_nodes(&s->box, &numbered);",
    'if (failed != NULL) status = fail(NAME_BAD_DOMAIN, "%s", failed);',
    "s->sites = (int)numbered.sites, s->nodes = (int)numbered.nodes;",
)
_COUNTED = (
    "Box box = {.nx = nx, .ny = ny, .nz = nz, .solid = solid};",
    "Nodes numbered;",
    "const char *failed = number_nodes(&box, &numbered);",
    "free_nodes(&numbered);",
    'if (failed != NULL) status = fail(NAME_BAD_DOMAIN, "%s", failed);',
    "sites = (int)numbered.sites, nodes = (int)numbered.nodes;",
)
_LISTED = (
    "int *node = status ? NULL : (int *)zeros(s, cells, sizeof(int), 0);",
    'if (!status && node == NULL) status = fail(NAME_SYSTEM_ERROR, "no memory for numbers of nodes");',
    "if (!status) {",
    "    write_links(&s->box, &numbered, s->links);",
    "    s->box.node = (const int *)memcpy(node, numbered.at, (size_t)cells * sizeof(int));",
    "}",
    "free_nodes(&numbered);",
)
