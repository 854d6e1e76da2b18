"""Generated modules as files; Numba caches machine code beside them, from where other processes load it."""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import njit
from numba.core.errors import NumbaError

from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.codegen.program import Program
from lbmtune.records import Resources
from lbmtune.records.store import CACHE_VARIABLE, CODE, cache_folder, make_cache
from lbmtune.records.whole_files import write_atomically

_ELSEWHERE = f"set {CACHE_VARIABLE} to a folder that can be written, where compiled kernels are kept"


def compile_program(program: Program) -> Binary:
    """Write the text to a file named after its digest and compile it by importing it.

    Raises CompileError, and InputError if the cache cannot be used.
    """
    path = written(program)
    module = import_text(path, program.source)
    code = [machine_code(getattr(module, entry)) for entry in program.entries]
    return Binary(
        image=str(path).encode(),
        digest=hashlib.sha256(b"\0".join(code)).hexdigest(),
        resources=Resources(code_bytes=max(map(len, code))),
    )


def written(program: Program) -> Path:
    """Return the file of the text in the cache, where it is written if it is not there. Raises InputError."""
    make_cache()
    path = cache_folder(CODE) / f"lbm_{program.digest[:24]}.py"
    _write(path, program.source)
    return path


def _write(path: Path, source: str) -> None:
    if not path.is_file() or path.read_text(encoding="utf-8") != source:
        write_atomically(path, source.encode(), _ELSEWHERE)


def import_text(path: Path, source: str) -> ModuleType:
    """Import a text as a module, kept at a path, and compiled anew if what is cached of it is damaged.

    Raises CompileError, InputError if the path cannot be written.
    """
    _write(path, source)
    try:
        return _imported(path)
    except CompileError:
        raise
    except Exception:  # whatever damaged pickles and machine code end in
        cached = list((path.parent / "__pycache__").glob(f"{path.stem}.*"))
        if not cached:
            raise
        for file in cached:
            file.unlink(missing_ok=True)
        return _imported(path)


def _imported(path: Path) -> ModuleType:
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


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that has Numba compile a function of this package, and cache it if it finds a folder for that.

    None is there if this package is installed where the user cannot write, and has no home.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:
            return njit(**options)(function)

    return compiled


def call_cached(function: Any, *arguments: Any) -> None:
    """Call a compiled function of this package, compiled anew if what Numba has cached of it is damaged."""
    try:
        function(*arguments)
    except (pickle.UnpicklingError, EOFError):
        function._cache.flush()
        function(*arguments)


def machine_code(entry: Any) -> bytes:
    """Return the object code of an entry: as it was compiled here, or as it was read from Numba's cache."""
    (compiled,), cache = entry.overloads.values(), entry._cache
    try:
        return bytes(compiled.library._get_compiled_object())
    except RuntimeError:  # Numba drops what it has read
        kept = cache._cache_file.load(cache._index_key(entry.declared, compiled.library.codegen))
    if kept is None:  # another process has replaced the cache since
        entry.recompile()
        return machine_code(entry)
    (_, _, (code, *_)), *_ = kept
    return bytes(code)
