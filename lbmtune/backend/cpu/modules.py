"""Generated modules as files; Numba caches machine code beside them, from where other processes load it."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from numba.core.errors import NumbaError

from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.codegen.program import Program
from lbmtune.records import Resources
from lbmtune.records.store import CACHE_VARIABLE, cache_folder, write_atomically

_ELSEWHERE = f"set {CACHE_VARIABLE} to a folder that can be written, where compiled kernels are kept"


def compile_program(program: Program) -> Binary:
    """Write the text to a file named after its digest and compile it by importing it. Raises CompileError."""
    path = cache_folder("cpu") / f"lbm_{program.digest[:24]}.py"
    module = import_text(path, program.source)
    code = [machine_code(getattr(module, entry)) for entry in program.entries]
    return Binary(
        image=str(path).encode(),
        digest=hashlib.sha256(b"\0".join(code)).hexdigest(),
        resources=Resources(code_bytes=max(map(len, code))),
    )


def import_text(path: Path, source: str) -> ModuleType:
    """Import a text as a module, kept at a path. Raises CompileError, InputError if the path cannot be written."""
    if not path.is_file() or path.read_text(encoding="utf-8") != source:
        write_atomically(path, source.encode(), _ELSEWHERE)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba finds the globals of cached code by the name of its module
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except NumbaError as error:
        raise CompileError(str(error)) from error
    return module


def machine_code(entry: Any) -> bytes:
    """Return the object code of an entry from Numba's cache."""
    (compiled,), cache = entry.overloads.values(), entry._cache
    (_, _, (code, *_)), *_ = cache._cache_file.load(cache._index_key(entry.declared, compiled.library.codegen))
    return bytes(code)
