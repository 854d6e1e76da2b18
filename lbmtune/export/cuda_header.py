"""A CUDA header around the kernel of a best.json: a solver that others compile, with a C interface.

All that it needs stands in the file: text, launches, buffers, domain rules, storage. The template is kernels/export.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lbmtune.catalogue.boundaries.arguments import WALL
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, told
from lbmtune.codegen.program import STEPS
from lbmtune.errors import InputError
from lbmtune.export.c_text import C_TYPES, braced, filled, lines_of, quoted, real, truth
from lbmtune.export.header_launches import buffer_statements, kernel_text, launch_statements
from lbmtune.export.header_state import index_list, moments, number_codes, populations, tables
from lbmtune.records.best import Best
from lbmtune.records.kernel_format import Kernel
from lbmtune.records.store import write_atomically

_OF_NVRTC_ALONE = ("--device-as-default-execution-space",)
_GRAPHED = ("graph", "dependent")


def write_cuda_header(best: Best, path: Path, name: str = "") -> None:
    """Write the header. name: of its namespace and functions. Raises InputError, also if it cannot be written."""
    write_atomically(path, cuda_header(best, name or default_name(best), path.name).encode())


def default_name(best: Best) -> str:
    """Return a C identifier made of the study and the key of the kernel, which no other kernel has."""
    words = re.sub(r"\W+", "_", f"{best.study}_{best.key[:6]}").strip("_").lower()
    return words if words[0].isalpha() else f"lbm_{words}"


def cuda_header(best: Best, name: str, file: str = "solver.h") -> str:
    """Return the text of the header. file: its name. Raises InputError for a kernel that it cannot hold."""
    check_exportable(best.case, best.kernel.target)
    _check_name(name)
    kernel, storage, case = best.kernel, best.storage, best.case
    fields = {
        **_titles(best, name, file),
        **_sections(best, name),
        **_properties(best),
        **launch_statements(kernel, name),
        **buffer_statements(kernel, case, name),
        "name": name,
        "NAME": name.upper(),
        "directions": len(storage.velocities),
        "velocities": ", ".join(braced(c) for c in storage.velocities),
        "weights": braced(real(w) for w in storage.weights),
        "faces": braced(case.faces),
        "extents": ", ".join(storage.extents),
        "conditions": lines_of(_conditions(kernel), 8),
    }
    return filled("solver", **fields)


def check_exportable(case: Case, target: str) -> None:
    """Raise InputError for a kernel that a header cannot hold."""
    what = ""
    if target != "cuda":
        what = f"a kernel for target={target} (use a study on a GPU, or lbmtune.load)"
    elif case.interpolates:
        what = "interpolated walls (use walls=half-way, or best.json): their tables follow from the surface"
    elif case.patches or conditions(case):
        found = "patches" if case.patches else f"a {told(case)}"
        what = f"{found} (use periodic faces and walls, or best.json): it completes no populations when it reads them"
    if what:
        raise InputError(f"format=cuda is not supported for {what}.")


# Of C++20: a namespace of that name would not compile.
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw
true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(
            f"name={name} is not supported for a namespace of C++ (use letters, digits and _, a letter first)."
        )
    if name in _KEYWORDS.split():
        raise InputError(f"name={name} is not supported for a namespace of C++ (use another): it is a keyword.")


def nvcc_options(options: Iterable[str]) -> tuple[str, ...]:
    """Return the options of NVRTC as those of nvcc."""
    return tuple(one.replace("--", "-", 1) for one in options if one not in _OF_NVRTC_ALONE)


def _titles(best: Best, name: str, file: str) -> dict[str, Any]:
    case, expected = best.case, best.expected
    domain = "x".join(map(str, case.domain))
    solid = "nx * ny * nz bytes, x fastest" if case.geometry else "NULL, this kernel has none"
    return {
        "title": f"{name}: {case.lattice} {case.collision}, {case.flow}",
        "version": best.lbmtune,
        "measured": f"{expected.mlups:,.0f} {case.speed_unit} on {best.environment.device}, {domain} cells"
        f"{', not reliable' * bool(expected.doubts)}",
        "options": " ".join(nvcc_options(best.kernel.options)),
        "file": file,
        "solid_said": solid,
    }


def _sections(best: Best, name: str) -> dict[str, str]:
    """Return the parts of the header that depend on how the kernel keeps its state."""
    kernel, storage, config = best.kernel, best.storage, best.config
    computed = config.computed.dtype
    texts = [kernel_text(kernel.source, name, "kernel")]
    if kernel.single:
        texts.append(kernel_text(kernel.single.source, name, "single"))
    listed = storage.links is not None
    return {
        "real": C_TYPES[computed],
        "stored": C_TYPES[storage.dtype],
        "scale": real(storage.scale),
        "kernels": "\n\n".join(texts),
        "codes": number_codes(storage),
        "state": moments(best) if storage.moments else populations(storage, implicit=config.implicit),
        "index_list": index_list(storage.links, name) if storage.links else "",
        **tables(best),
        "has_state": "true" if config.implicit or not listed else "!is_solid(b, at)",
    }


def _properties(best: Best) -> dict[str, Any]:
    kernel, case = best.kernel, best.case
    two = len([one for one in kernel.buffers if one.name in ("f0", "f1")]) > 1
    return {
        "steps": kernel.steps,
        "period": len(kernel.period),
        "parities": max(1, len(best.storage.locations)),
        "openings": len(kernel.opening),
        "exchanges": truth(two and not kernel.keeps_roles),
        "any_steps": truth(STEPS in kernel.arguments),
        "takes_solids": truth(bool(case.geometry)),
        "takes_force": truth("force_x" in kernel.arguments),
        "takes_wall_velocity": truth(any(name in kernel.arguments for name in WALL)),
        "in_graphs": truth(best.configuration.get("launch") in _GRAPHED),
        "relaxation_rate": real(case.relaxation_rate),
        "force": ", ".join(map(real, case.force)),
        "wall_velocity": ", ".join(map(real, case.wall_velocity)),
    }


def _conditions(kernel: Kernel) -> Iterator[str]:
    assert kernel.domain  # of a best.json that this version has made
    for one in kernel.domain.conditions():
        many = " * multiprocessors()" if one.per_multiprocessor else ""
        most = "-1" if one.most is None else f"{one.most}LL{many}"
        yield f"{{{quoted(one.value)}, {one.value}, {one.multiple}, {one.least}, {most}, {quoted(one.because)}}},"
