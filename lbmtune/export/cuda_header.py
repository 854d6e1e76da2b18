"""A CUDA header around the kernel of a best.json: a solver that others compile, with a C interface.

All that it needs stands in the file: text, launches, buffers, domain rules, storage. The template is kernels/export.
"""

from collections.abc import Iterable
from pathlib import Path

from lbmtune.export.c_text import filled, truth
from lbmtune.export.header_launches import (
    buffer_statements,
    chunk_statements,
    chunks_text,
    kernel_text,
    launch_statements,
)
from lbmtune.export.header_state import index_list
from lbmtune.export.solver_text import cells, check_exportable, check_name, default_name, interface, properties, titles
from lbmtune.records.best_json.document import Best
from lbmtune.records.best_json.kernel import Links
from lbmtune.records.whole_files import write_atomically

_OF_NVRTC_ALONE = ("--device-as-default-execution-space",)
_GRAPHED = ("graph", "dependent")
_TABLES = """\
constexpr Tables tables_of_host = {NAME}_TABLES;
static __constant__ Tables tables_of_device = {NAME}_TABLES;

__host__ __device__ inline const Tables *tables() {{
#ifdef __CUDA_ARCH__
    return &tables_of_device;
#else
    return &tables_of_host;
#endif
}}"""


def write_cuda_header(best: Best, path: Path, name: str = "") -> None:
    """Write the header. name: of its namespace and functions. Raises InputError, also if it cannot be written."""
    write_atomically(path, cuda_header(best, name or default_name(best), path.name).encode())


def cuda_header(best: Best, name: str, file: str = "solver.h") -> str:
    """Return the text of the header. file: its name. Raises InputError for a kernel that it cannot hold."""
    check_exportable(best.case, best.kernel.target, "cuda")
    check_name(name)
    kernel, tables = best.kernel, _TABLES.format(NAME=name.upper())
    of_chunks = {"more": _SET_CHUNKS, "methods": _METHOD} if kernel.chunks else {"more": "", "methods": ""}
    declared = {**_DECLARED, **{part: text.format(name=name) for part, text in of_chunks.items()}}
    texts = [kernel_text(kernel.source, name, "kernel")]
    if kernel.single:
        texts.append(kernel_text(kernel.single.source, name, "single"))
    fields = {
        **titles(best, name, file),
        **properties(best),
        **launch_statements(kernel, name),
        **buffer_statements(best, name),
        "options": " ".join(nvcc_options(kernel.options)),
        **chunk_statements(kernel.chunks, name),
        "interface": interface(best, name, **declared) + (chunks_text(kernel.chunks, name) if kernel.chunks else ""),
        "kernels": "\n\n".join(texts),
        "cells": cells(best, name, "__host__ __device__ inline", tables),
        "index_list": _index_list(best.storage.links, name) if best.storage.links else "",
        "openings": len(kernel.opening),
        "in_graphs": truth(best.configuration.get("launch") in _GRAPHED),
    }
    return filled("solver", **fields)


_DECLARED = {
    "types": "",
    "failure": "CUDA_ERROR",
    "on_device": " on the current device",
    "in_queue": ", which enqueues into a stream; NULL: into one of its own.",
    "queue_type": "struct CUstream_st *",
    "queue": "stream",
    "does": "Enqueue",
}
"""Texts of the interface that hold for a GPU."""
_SET_CHUNKS = """\
/* Blocks along z of the next steps, {name}_chunks() at first: which number is the fastest may be timed. */
int {name}_set_chunks({name}_solver *solver, long long chunks);
"""
_METHOD = "    void set_chunks(long long chunks) {{ check({name}_set_chunks(solver_, chunks)); }}\n"


def _index_list(links: Links, name: str) -> str:
    return f"{index_list(links)}\n{filled('numbered', NAME=name.upper())}"


def nvcc_options(options: Iterable[str]) -> tuple[str, ...]:
    """Return the options of NVRTC as those of nvcc."""
    return tuple(one.replace("--", "-", 1) for one in options if one not in _OF_NVRTC_ALONE)
