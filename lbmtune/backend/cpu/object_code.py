"""Object code of CPU kernels for other programs: their entries as C functions, compiled for a named processor.

The kernels are translated as for Numba, but with neither its wrappers nor its runtime. What they call besides the C
library are the functions of Numba that run parallel loops; those get other names, which the other program defines.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core.codegen import AOTCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.sigutils import normalize_signature

from lbmtune.backend.cpu import simd
from lbmtune.backend.cpu.compilation.modules import written
from lbmtune.backend.cpu.device import vector_bits
from lbmtune.backend.cpu.translate import Site, Translated
from lbmtune.codegen.program import Program
from lbmtune.errors import named

HOST = "host"
_AVX2 = ("avx2", "bmi", "bmi2", "fma")
_AVX512 = (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
_LEVELS = {"x86-64-v3": _AVX2, "x86-64-v4": _AVX512}


class Processor(NamedTuple):
    """A processor by the name that LLVM has for it, and features without which code for it cannot run."""

    name: str
    features: Sequence[str]


def processor(target: str) -> Processor:
    """Return the processor of a target. Raises InputError for one that is not known on this machine."""
    if target == HOST:
        return Processor(llvm.get_host_cpu_name(), {512: _AVX512, 256: _AVX2}.get(vector_bits(), ()))
    levels = _LEVELS if llvm.get_process_triple().startswith("x86_64") else {}
    return Processor(target, named("target", target, {HOST: (), **levels}))


def object_code(kernels: Sequence[tuple[Program, Mapping[str, str]]], calls: Mapping[str, str], target: str) -> bytes:
    """Return an object with the entries of programs as functions of C.

    kernels: programs, and a name for each of their entries; calls: names for the functions that they call.
    Arrays are passed as pointers to their first elements, integers with 64 bits. Raises InputError.
    """
    processor(target)
    library = _Codegen("kernels", target).create_library("kernels")
    with global_compiler_lock:
        for program, names in kernels:
            module = library.create_ir_module("kernels")  # each its own: their functions may have equal names
            entries = _entries(program)
            for entry, name in names.items():
                _define(module, name, entries[entry])
            library.add_llvm_module(_calling(llvm.parse_assembly(str(module)), calls))
        found: bytes = library.emit_native_object()
    return found


class _Codegen(AOTCPUCodegen):  # type: ignore[misc]
    """Numba's code generation ahead of time, for this processor with the features that it has here.

    A virtual machine may lack some that its processor has by name.
    """

    def _customize_tm_features(self) -> str:
        return str(self._get_host_cpu_features()) if self._cpu_name == HOST else ""


class _Entry(NamedTuple):
    """An entry of a text, not compiled yet. declared: its signature."""

    translated: Translated
    declared: str


def _kernel(declared: str, *, parallel: bool) -> Callable[[Callable[..., None]], _Entry]:
    """Return what stands for `simd.kernel`, which has Numba compile an entry."""
    return lambda function: _Entry(Translated(function, parallel=parallel), declared)


def _entries(program: Program) -> dict[str, _Entry]:
    """Return the entries of a text by name. It is run without its import of support modules, which are given."""
    path = written(program)
    tree = ast.parse(program.source, str(path))
    support = next(one for one in tree.body if isinstance(one, ast.ImportFrom))
    tree.body.remove(support)
    names: dict[str, Any] = {one.name: import_module(f"{support.module}.{one.name}") for one in support.names}
    names["simd"] = SimpleNamespace(**{**vars(simd), "kernel": _kernel})
    exec(compile(tree, str(path), "exec"), names)
    return {entry: names[entry] for entry in program.entries}


def _calling(module: Any, names: Mapping[str, str]) -> Any:
    """Return the module, in which functions that it calls have other names."""
    for function in module.functions:
        if function.is_declaration and function.name in names:
            function.name = names[function.name]
    return module


def _define(module: Any, name: str, entry: _Entry) -> None:
    """Define a function of C that does what an entry does."""
    context, typing = cpu_target.target_context, cpu_target.typing_context
    kinds, _ = normalize_signature(entry.declared)
    made = ir.Function(module, ir.FunctionType(ir.VoidType(), [_c_type(context, kind) for kind in kinds]), name)
    builder = ir.IRBuilder(made.append_basic_block("entry"))
    site = Site(context, typing, builder)
    values = [site.received(kind, value) for kind, value in zip(kinds, made.args, strict=True)]
    builder.call(*entry.translated.into(site, values))
    builder.ret_void()


def _c_type(context: Any, kind: Any) -> Any:
    if isinstance(kind, types.Array):
        return context.get_data_type(kind.dtype).as_pointer()
    return context.get_data_type(kind)
