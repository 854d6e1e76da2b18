"""The part of a CUDA header that holds the texts of kernels, launches them, and allocates their buffers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lbmtune.catalogue.boundaries.cell_flags import MOVING_WORDS, WORDS
from lbmtune.codegen.program import BARRIER, FIRST_PLANE, LAST_PLANE, LIST, PARITY, STEPS
from lbmtune.export.c_text import C_TYPES, filled, lines_of, real
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Buffer, Kernel, LaunchGeometry
from lbmtune.records.best_json.law import CHUNKS, LIKELY, Chunks

_ENTRY = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^\n]*?\)\s+)?(\w+)\(')
_LINE_MARK = re.compile(r"^[ \t]*#line .*\n", re.MULTILINE)
_OF_BOTH = re.compile(r"^(constexpr \w+ \w+\()", re.MULTILINE)
"""A function that NVRTC takes for one of the device, as its options say; nvcc wants to be told."""
_MACRO = re.compile(r"^[ \t]*#define (\w+)", re.MULTILINE)
INTEGERS = ("nx", "ny", "nz", "sites", "nodes", PARITY, STEPS, FIRST_PLANE, LAST_PLANE)
"""Arguments that the solver knows besides buffers and reals."""


def kernel_text(source: str, name: str, space: str) -> str:
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


def launch_statements(kernel: Kernel, name: str) -> dict[str, str]:
    """Return the statements that launch steps, and those that prepare the entries."""
    single = kernel.single.launches if kernel.single else ()
    entries = [("kernel", one) for step in (*kernel.period, *kernel.opening) for one in step]
    entries += [("single", one) for one in single]
    prepared = dict.fromkeys(_prepared(one, name, space) for space, one in entries)
    return {
        "prepare": lines_of(prepared, 8),
        "launch_step": lines_of(_by_parity(kernel.period, name), 8),
        "launch_single": lines_of((_launch(one, name, "single") for one in single), 8),
        "launch_opening": lines_of(("switch (parity) {", *_by_parity(kernel.opening, name), "}"), 8)
        if kernel.opening
        else "",
    }


def _by_parity(steps: Sequence[Sequence[LaunchGeometry]], name: str) -> Iterator[str]:
    for parity, step in enumerate(steps):
        yield f"case {parity}:"
        yield from (f"    {_launch(one, name, 'kernel')}" for one in step)
        yield "    break;"


def chunks_text(chunks: Chunks, name: str) -> str:
    """Return the functions of the number of chunks of planes."""
    return filled("chunks", name=name, NAME=name.upper(), most=chunks.most, end=chunks.end, likely=LIKELY)


def chunk_statements(chunks: Chunks | None, name: str) -> dict[str, str]:
    """Return the member for the number of chunks, its first value, and the function that sets another one."""
    if chunks is None:
        return dict.fromkeys(("chunk_member", "first_chunks", "set_chunks"), "")
    return {
        "chunk_member": f"    long long {CHUNKS} = 1;  // blocks along z\n",
        "first_chunks": f"        {CHUNKS} = {name}_chunks(nx, ny, nz);\n",
        "set_chunks": filled("set_chunks", name=name, NAME=name.upper()),
    }


def _where(one: LaunchGeometry, name: str, space: str) -> str:
    grid, block = ", ".join(one.grid_formula), ", ".join(map(str, one.block))
    shape = f"extents({grid}), extents({block}), {one.shared_bytes}, {one.mode}"
    return f"{space}::{_unique(one.entry, name, space)}, {shape}"


def _prepared(one: LaunchGeometry, name: str, space: str) -> str:
    return f"allow({_where(one, name, space)});"


def _launch(one: LaunchGeometry, name: str, space: str) -> str:
    return f"launch({_where(one, name, space)}, {', '.join(one.arguments)});"


def buffer_statements(best: Best, name: str) -> dict[str, str]:
    """Return the members for buffers and scalars, and how they get their memory and their first values."""
    kernel = best.kernel
    others = [one for one in kernel.buffers if one.name not in ("f0", "f1")]
    members = [*(one.name for one in others), *kernel.slots]
    reals = [name for name in kernel.arguments if name not in INTEGERS]
    listed = LIST in members
    return {
        "buffer_members": lines_of([f"Address {', '.join(members)};"] if members else [], 4),
        "scalar_members": lines_of([f"real {', '.join(f'{one} = 0' for one in reals)};"] if reals else [], 4),
        "allocations": lines_of(_allocations(kernel), 8),
        "fill": lines_of(_first_values(others), 8),
        "update": lines_of(_assigned(values_of(reals, best)), 8),
        "make_list": lines_of(_NUMBERED if listed else (), 8),
        "count_nodes": lines_of((one.replace("NAME", name) for one in _COUNTED) if listed else (), 8),
    }


_NUMBERED = (
    "const Numbered numbered(box);",
    "sites = static_cast<int>(numbered.sites), nodes = static_cast<int>(numbered.nodes);",
    "std::vector<uint32_t> words(words_of_list(&numbered));",
    "write_links(&box, &numbered, words.data());",
)
_COUNTED = (
    "NAME::Box box = {};",
    "box.nx = nx, box.ny = ny, box.nz = nz, box.solid = solid;",
    "const NAME::Numbered numbered(box);",
    "sites = static_cast<int>(numbered.sites), nodes = static_cast<int>(numbered.nodes);",
)


def _allocations(kernel: Kernel) -> Iterator[str]:
    for one in kernel.buffers:
        formula = one.elements_formula
        yield f"{one.name} = bytes_of({formula}, sizeof({C_TYPES[one.dtype]}));"
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
        yield f"launch_over(cells, make_words, box, {tables});"
    if LIST in names:
        yield "Address node = bytes_of(cells, sizeof(int));"
        yield "const cudaMemcpyKind up = cudaMemcpyHostToDevice;"
        yield 'check(cudaMemcpyAsync(node.at, numbered.at, cells * sizeof(int), up, stream), "copy of nodes");'
        yield 'check(cudaMemcpyAsync(links.at, words.data(), words.size() * 4, up, stream), "copy of links");'
        yield "box.node = node;"


def _assigned(values: Mapping[str, str]) -> Iterator[str]:
    for name, value in values.items():
        yield f"{name} = static_cast<real>({value});"


def values_of(reals: Iterable[str], best: Best, of: str = "") -> dict[str, str]:
    """Return the values of real arguments in storage units as formulas in C. of: what leads to the solver's members."""
    numbers = {"scale": real(best.storage.scale), "magic": real(best.case.magic)}
    return {name: _VALUES[name].format(of=of, **numbers) for name in reals}


_VALUES: Mapping[str, str] = {
    "omega": "{of}relaxation_rate",
    "omega_minus": "1.0 / ({magic} / (1.0 / {of}relaxation_rate - 0.5) + 0.5)",
    **{f"force_{axis}": f"{{of}}force[{n}] * {{scale}}" for n, axis in enumerate("xyz")},
    **{f"wall_{axis}": f"{{of}}wall_velocity[{n}] * {{scale}}" for n, axis in enumerate("xyz")},
}
"""Values of the real arguments, in storage units."""
