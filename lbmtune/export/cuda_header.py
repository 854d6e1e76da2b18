"""A CUDA header around the kernel of a best.json: a solver that others compile, with a C interface.

All that it needs stands in the file: text, launches, buffers, domain rules, storage. The template is kernels/export.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from lbmtune.catalogue.boundaries.arguments import WALL
from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.catalogue.moments.basis import powers, shares
from lbmtune.catalogue.precision import Codes
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.cell_types import conditions, told
from lbmtune.codegen.program import BARRIER, FIRST_PLANE, LAST_PLANE, LIST, STEPS
from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.records.best import Best
from lbmtune.records.kernel_format import Buffer, Kernel, LaunchGeometry, Links, Location, Storage
from lbmtune.records.store import write_atomically

_ENTRY = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^\n]*?\)\s+)?(\w+)\(')
_LINE_MARK = re.compile(r"^[ \t]*#line .*\n", re.MULTILINE)
_OF_BOTH = re.compile(r"^(constexpr \w+ \w+\()", re.MULTILINE)
"""A function that NVRTC takes for one of the device, as its options say; nvcc wants to be told."""
_MACRO = re.compile(r"^[ \t]*#define (\w+)", re.MULTILINE)
_C_TYPES = {"float32": "float", "float64": "double", "float16": "unsigned short", "uint16": "unsigned short"}
_C_TYPES |= {"int32": "int", "uint32": "unsigned"}
_OF_NVRTC_ALONE = ("--device-as-default-execution-space",)
_INTEGERS = ("nx", "ny", "nz", "sites", "nodes", STEPS, FIRST_PLANE, LAST_PLANE)
"""Arguments that the solver knows besides buffers and reals."""
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
        **_launches(kernel, name),
        **_memory(kernel, case, name),
        "name": name,
        "NAME": name.upper(),
        "directions": len(storage.velocities),
        "velocities": ", ".join(_braced(c) for c in storage.velocities),
        "weights": _braced(_real(w) for w in storage.weights),
        "faces": _braced(case.faces),
        "extents": ", ".join(storage.extents),
        "conditions": _lines(_conditions(kernel), 8),
    }
    return _filled("solver", **fields)


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


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
        raise InputError(f"name={name} is not supported for a namespace of C++ (use letters, digits and _).")


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
    texts = [_kernel_text(kernel.source, name, "kernel")]
    if kernel.single:
        texts.append(_kernel_text(kernel.single.source, name, "single"))
    listed = storage.links is not None
    return {
        "real": _C_TYPES[computed],
        "stored": _C_TYPES[storage.dtype],
        "scale": _real(storage.scale),
        "kernels": "\n\n".join(texts),
        "codes": _codes(storage),
        "state": _moments(best) if storage.moments else _populations(storage, implicit=config.implicit),
        "index_list": _index_list(storage.links, name) if storage.links else "",
        **_tables(best),
        "has_state": "true" if config.implicit or not listed else "!is_solid(b, at)",
    }


def _kernel_text(source: str, name: str, space: str) -> str:
    """Return a text in a namespace of its own, with entries whose names are unique, and without macros behind it."""
    text = _OF_BOTH.sub(r"__host__ __device__ \1", _LINE_MARK.sub("", source).strip())
    entries = [*dict.fromkeys(_ENTRY.findall(text))]
    macros = [*entries, *dict.fromkeys(_MACRO.findall(text))]
    return "\n".join(
        [
            *(f"#define {entry} {_unique(entry, name, space)}" for entry in entries),
            f"namespace {name} {{\nnamespace {space} {{\n",
            text,
            f"\n}}  // namespace {space}\n}}  // namespace {name}",
            *(f"#undef {macro}" for macro in macros),
        ]
    )


def _unique(entry: str, name: str, space: str) -> str:
    return f"{name}_{entry}" if space == "kernel" else f"{name}_{space}_{entry}"


def _codes(storage: Storage) -> str:
    """Return the conversion of stored values to numbers and back."""
    if storage.codes is None:
        return (
            "__host__ __device__ inline double decoded(const stored value) { return value; }\n"
            "__host__ __device__ inline stored encoded(const double value) { return static_cast<stored>(value); }"
        )
    codes = Codes(
        storage.codes.exponent_bits, storage.codes.mantissa_bits, storage.codes.bias, special=storage.codes.infinite
    )
    infinity = ((1 << codes.exponent_bits) - 1) << codes.mantissa_bits
    return _filled(
        "codes",
        exponent_bits=codes.exponent_bits,
        mantissa_bits=codes.mantissa_bits,
        bias=codes.bias,
        special=_bool(codes.special),
        infinity=infinity,
        largest=_real(codes.largest),
        most_code=infinity if codes.special else 0x7FFF,
        saturates="" if codes.special else "; beyond the largest number, that one",
    )


def _tables(best: Best) -> dict[str, str]:
    """Return the fields of the tables that belong to the state, and their values."""
    storage = best.storage
    if storage.moments:
        count, lattice = len(storage.moments), best.case.stencil
        return {
            "table_fields": f"    double to_moments[{count}][directions], to_populations[directions][{count}];",
            "table_values": f"     {_matrix(powers(lattice))}, \\\n     {_matrix(shares(lattice))}",
        }
    places = [
        [[_place(one, cut=False), _place(one, cut=True)] for one in _in_order(phase)] for phase in storage.locations
    ]
    phases = (_rows(_braced(map(_braced, pair)) for pair in phase) for phase in places)
    return {
        "table_fields": f"    int location[{len(places)}][directions][2][4];  // slot, offset; if the link is cut",
        "table_values": f"     {_braced(phases)}",
    }


def _in_order(phase: Iterable[Location]) -> list[Location]:
    return sorted(phase, key=lambda one: one.direction)


def _place(one: Location, *, cut: bool) -> tuple[int, ...]:
    return (one.cut_slot, *one.cut_offset) if cut else (one.slot, *one.offset)


def _populations(storage: Storage, *, implicit: bool) -> str:
    return _filled(
        "populations",
        element=_lines(_listed_cell() if storage.links else _boxed_cell(storage), 4),
        index=storage.index,
        reader_adds=_bool(storage.wall_term == "read"),
        solids_cut=_bool(not implicit),
        shift=storage.shift,
    )


def _listed_cell() -> Iterator[str]:
    yield "(void)cut;"
    yield "const long long X = b.node[number_of(b, neighbour(b, at, place + 1))], Y = 0, Z = 0;"
    yield "if (X < 0) return -1;"


def _boxed_cell(storage: Storage) -> Iterator[str]:
    """Yield the storage coordinates of a place."""
    yield "(void)cut;"
    blocks = storage.blocks or (0, 0, 0)
    axes = zip("xyz", storage.ghost, blocks, storage.origin, strict=True)
    for axis, (name, ghost, block, origin) in enumerate(axes, 1):
        moved = f"at.{name} + place[{axis}]"
        wraps = f"wrapped({moved}, b.n{name})"
        yield f"const long long {name} = {f'cut ? {moved} : {wraps}' if ghost else wraps};"
        found = f"{name} + {origin}"
        if block:
            found = f"(({name} + {block}) / {block} - 1) * {block + 2} + ({name} + {block}) % {block} + 1"
        yield f"const long long {name.upper()} = {found};"


def _moments(best: Best) -> str:
    places = (f"case {k}: return {one.index};" for k, one in enumerate(best.storage.moments))
    return _filled("moments", moments=len(best.storage.moments), places=_lines(places, 8))


def _index_list(links: Links, name: str) -> str:
    pointers = (*links.pointers, *links.chains)
    rows = (
        f"{{{_braced(p.open)}, {_braced(p.cut)}, {_braced(p.link or (0, 0, 0))}, {_bool(p.link is not None)}}},"
        for p in pointers
    )
    return _filled(
        "index_list",
        NAME=name.upper(),
        pointers=_lines(rows, 4),
        kept=len(links.pointers),
        all=len(pointers),
        masked=len(links.masked),
        masked_links=", ".join(map(_braced, links.masked)) or "{0, 0, 0}",
        moves=int(links.rows - len(links.pointers) - bool(links.masked)),
        chased=_bool(links.chased),
        granule=links.granule,
        rows=links.rows,
        order=skeleton(f"export/orders/{links.order}.h.in").strip(),
    )


def _properties(best: Best) -> dict[str, Any]:
    kernel, case = best.kernel, best.case
    two = len([one for one in kernel.buffers if one.name in ("f0", "f1")]) > 1
    return {
        "steps": kernel.steps,
        "period": len(kernel.period),
        "parities": max(1, len(best.storage.locations)),
        "openings": len(kernel.opening),
        "exchanges": _bool(two and not kernel.keeps_roles),
        "any_steps": _bool(STEPS in kernel.arguments),
        "takes_solids": _bool(bool(case.geometry)),
        "takes_force": _bool("force_x" in kernel.arguments),
        "takes_wall_velocity": _bool(any(name in kernel.arguments for name in WALL)),
        "in_graphs": _bool(best.configuration.get("launch") in _GRAPHED),
        "relaxation_rate": _real(case.relaxation_rate),
        "force": ", ".join(map(_real, case.force)),
        "wall_velocity": ", ".join(map(_real, case.wall_velocity)),
    }


def _conditions(kernel: Kernel) -> Iterator[str]:
    assert kernel.domain  # of a best.json that this version has made
    for one in kernel.domain.conditions():
        many = " * multiprocessors()" if one.per_multiprocessor else ""
        most = "-1" if one.most is None else f"{one.most}LL{many}"
        yield f"{{{_quoted(one.value)}, {one.value}, {one.multiple}, {one.least}, {most}, {_quoted(one.because)}}},"


def _launches(kernel: Kernel, name: str) -> dict[str, str]:
    """Return the statements that launch steps, and those that prepare the entries."""
    single = kernel.single.launches if kernel.single else ()
    entries = [("kernel", one) for step in (*kernel.period, *kernel.opening) for one in step]
    entries += [("single", one) for one in single]
    prepared = dict.fromkeys(_prepared(one, name, space) for space, one in entries)
    return {
        "prepare": _lines(prepared, 8),
        "launch_step": _lines(_by_parity(kernel.period, name), 8),
        "launch_single": _lines((_launch(one, name, "single") for one in single), 8),
        "launch_opening": _lines(("switch (parity) {", *_by_parity(kernel.opening, name), "}"), 8)
        if kernel.opening
        else "",
    }


def _by_parity(steps: Sequence[Sequence[LaunchGeometry]], name: str) -> Iterator[str]:
    for parity, step in enumerate(steps):
        yield f"case {parity}:"
        yield from (f"    {_launch(one, name, 'kernel')}" for one in step)
        yield "    break;"


def _where(one: LaunchGeometry, name: str, space: str) -> str:
    grid, block = ", ".join(one.grid_formula), ", ".join(map(str, one.block))
    shape = f"extents({grid}), extents({block}), {one.shared_bytes}, {one.mode}"
    return f"{space}::{_unique(one.entry, name, space)}, {shape}"


def _prepared(one: LaunchGeometry, name: str, space: str) -> str:
    return f"allow({_where(one, name, space)});"


def _launch(one: LaunchGeometry, name: str, space: str) -> str:
    return f"launch({_where(one, name, space)}, {', '.join(one.arguments)});"


def _memory(kernel: Kernel, case: Case, name: str) -> dict[str, str]:
    """Return the members for buffers and scalars, and how they get their memory and their first values."""
    others = [one for one in kernel.buffers if one.name not in ("f0", "f1")]
    members = [*(one.name for one in others), *kernel.slots]
    reals = [name for name in kernel.arguments if name not in _INTEGERS]
    listed = LIST in members
    return {
        "buffer_members": _lines([f"Address {', '.join(members)};"] if members else [], 4),
        "scalar_members": _lines([f"real {', '.join(f'{one} = 0' for one in reals)};"] if reals else [], 4),
        "allocations": _lines(_allocations(kernel), 8),
        "fill": _lines(_first_values(others), 8),
        "update": _lines(_updates(reals, case), 8),
        "make_list": _lines(_NUMBERED if listed else (), 8),
        "count_nodes": _lines((one.replace("NAME", name) for one in _COUNTED) if listed else (), 8),
    }


_NUMBERED = (
    "const Nodes numbered = number_nodes(box);",
    "sites = static_cast<int>(numbered.sites), nodes = static_cast<int>(numbered.nodes);",
    "const std::vector<std::uint32_t> words = links_of(box, numbered);",
)
_COUNTED = (
    "NAME::Box box = {};",
    "box.nx = nx, box.ny = ny, box.nz = nz, box.solid = solid;",
    "const NAME::Nodes numbered = NAME::number_nodes(box);",
    "sites = static_cast<int>(numbered.sites), nodes = static_cast<int>(numbered.nodes);",
)


def _allocations(kernel: Kernel) -> Iterator[str]:
    for one in kernel.buffers:
        formula = one.elements_formula
        yield f"{one.name} = bytes_of({formula}, sizeof({_C_TYPES[one.dtype]}));"
    for name, start in kernel.slots.items():
        yield f"{name}.at = static_cast<stored *>(f0.at) + ({start});"


def _first_values(others: Sequence[Buffer]) -> Iterator[str]:
    names = {one.name: one for one in others}
    if BARRIER in names:
        size = f"({names[BARRIER].elements_formula}) * sizeof(unsigned)"
        yield f'check(cudaMemsetAsync({BARRIER}.at, 0, {size}, stream), "cudaMemset");'
    if WORDS in names or MOVING_WORDS in names:
        tables = ", ".join(
            f"static_cast<unsigned *>({n}.at)" if n in names else "static_cast<unsigned *>(nullptr)"
            for n in (WORDS, MOVING_WORDS)
        )
        yield f"launch_over(cells, make_flags, box, {tables});"
    if LIST in names:
        yield "Address node = bytes_of(cells, sizeof(int));"
        yield "const cudaMemcpyKind up = cudaMemcpyHostToDevice;"
        yield 'check(cudaMemcpyAsync(node.at, numbered.at.data(), cells * sizeof(int), up, stream), "copy of nodes");'
        yield 'check(cudaMemcpyAsync(links.at, words.data(), words.size() * 4, up, stream), "copy of links");'
        yield "box.node = node;"


def _updates(reals: Iterable[str], case: Case) -> Iterator[str]:
    for name in reals:
        yield f"{name} = static_cast<real>({_VALUES[name].replace('MAGIC', _real(case.magic))});"


_VALUES: Mapping[str, str] = {
    "omega": "relaxation_rate",
    "omega_minus": "1.0 / (MAGIC / (1.0 / relaxation_rate - 0.5) + 0.5)",
    **{f"force_{axis}": f"force[{n}] * scale" for n, axis in enumerate("xyz")},
    **{f"wall_{axis}": f"wall_velocity[{n}] * scale" for n, axis in enumerate("xyz")},
}
"""Values of the real arguments, in storage units."""


def _filled(piece: str, **values: object) -> str:
    return Template(skeleton(f"export/{piece}.h.in")).substitute(values).rstrip() + "\n"


def _lines(lines: Iterable[str], indent: int) -> str:
    return "\n".join(" " * indent + line for line in lines)


def _braced(values: Iterable[object]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def _matrix(rows: Iterable[Iterable[float]]) -> str:
    return _rows(_braced(map(_real, row)) for row in rows)


def _rows(rows: Iterable[str]) -> str:
    """Return rows of a table of a macro, each on a line of its own."""
    return "{" + ", \\\n      ".join(rows) + "}"


def _number(text: str) -> float:
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def _real(value: object) -> str:
    """Return a number as a double of C, which reads the same one."""
    return repr(_number(value) if isinstance(value, str) else float(value))  # type: ignore[arg-type]


def _bool(value: object) -> str:
    return "true" if value else "false"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
