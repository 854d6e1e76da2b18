"""NVRTC through ctypes: compiles CUDA text for a real architecture without a GPU or a driver."""

import ctypes
import hashlib
import re
from collections.abc import Iterator
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lbmtune.backend.cuda.sass import spill_hazards
from lbmtune.backend.protocol import Binary, CompileError
from lbmtune.codegen.program import Program
from lbmtune.errors import DeviceUnavailableError
from lbmtune.records import Entry, Resources

_NAME = "lbmtune.cu"
_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
_PACKAGES = ("nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib")
_CACHES = (12, 9)
"""The first version that caches what it compiled, with an empty log, and has --no-cache."""
_MINIMAL = (13, 0)
"""The first version with --minimal, which leaves out textures and device launches: the same code, sooner."""
_LOWER_LEVELS = ("-O1", "-O0")
"""Optimisation levels of the assembler below its default."""
_TOOLKITS = ("/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64")


def compile_cuda(program: Program, architecture: str = "sm_90") -> Binary:
    """Return a cubin with its resources. Raises CompileError with the log, DeviceUnavailableError without NVRTC."""
    options = (*program.options, f"--gpu-architecture={architecture}")
    return _with_dynamic_shared(program, compile_text(program.source, options, expressions=program.expressions))


def reassembled(program: Program, architecture: str) -> Iterator[tuple[str, Binary]]:
    """Yield the text assembled with fewer and fewer optimisations, after the level of each.

    The compiler proper produces the same PTX as for `compile_cuda`. If a lower level is right and that is not, the
    text and its PTX are right, and the assembler is not.
    """
    for level in _LOWER_LEVELS:
        options = (*program.options, f"--gpu-architecture={architecture}", f"--ptxas-options={level}")
        made = compile_text(program.source, options, expressions=program.expressions)
        yield level, _with_dynamic_shared(program, made)


def _with_dynamic_shared(program: Program, binary: Binary) -> Binary:
    """Return the binary whose entries count the dynamic shared memory of their launches."""
    dynamic = program.dynamic_shared_bytes
    entries = {
        name: replace(entry, shared_bytes=entry.shared_bytes + dynamic.get(name, 0))
        for name, entry in binary.resources.entries.items()
    }
    return replace(binary, resources=Resources(entries=entries, code_bytes=binary.resources.code_bytes))


def compile_text(source: str, options: tuple[str, ...], name: str = _NAME, expressions: tuple[str, ...] = ()) -> Binary:
    """Compile any text. options: with the architecture; name: file name in messages and line tables.

    expressions: entries of C++, such as 'step<32>'; the resources are theirs then.
    """
    installed = version()
    with_log = (*options, "--ptxas-options=-v", *(("--minimal",) if installed >= _MINIMAL else ()))
    names: dict[str, str] = dict.fromkeys(expressions, "")
    log, image = product_of(source, with_log, "CUBIN", name, names)
    if "registers" not in log and installed >= _CACHES:
        log, image = product_of(source, (*with_log, "--no-cache"), "CUBIN", name, names)
    found = resources(log, image)
    if names:
        known = {entry: found.entries[inner] for entry, inner in names.items() if inner in found.entries}
        found = Resources(entries=known, code_bytes=len(image))
    return Binary(image, hashlib.sha256(image).hexdigest(), found, log, names)


def product_of(
    source: str, options: tuple[str, ...], product: str, name: str = _NAME, names: dict[str, str] | None = None
) -> tuple[str, bytes]:
    """Compile any text; return the log and the product: "CUBIN" or "PTX".

    names: entries of C++, which get the names that they have in the product.
    """
    library, handle, wanted = nvrtc(), c_void_p(), names if names is not None else {}
    _check(library, library.nvrtcCreateProgram(byref(handle), source.encode(), name.encode(), 0, None, None))
    try:
        for entry in wanted:
            _check(library, library.nvrtcAddNameExpression(handle, entry.encode()))
        encoded = [option.encode() for option in options]
        status = library.nvrtcCompileProgram(handle, len(encoded), (c_char_p * len(encoded))(*encoded))
        log = _fetch(library, handle, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        if status:
            raise CompileError(log or library.nvrtcGetErrorString(status).decode())
        for entry in wanted:
            lowered = c_char_p()
            _check(library, library.nvrtcGetLoweredName(handle, entry.encode(), byref(lowered)))
            wanted[entry] = (lowered.value or b"").decode()
        return log, _fetch(library, handle, product)
    finally:
        library.nvrtcDestroyProgram(byref(handle))


def version() -> tuple[int, int]:
    """Return the version of NVRTC, for example (13, 0). Raises DeviceUnavailableError if there is none."""
    major, minor = c_int(), c_int()
    _check(nvrtc(), nvrtc().nvrtcVersion(byref(major), byref(minor)))
    return major.value, minor.value


def architectures() -> tuple[str, ...]:
    """Return the supported architectures, oldest first: 'sm_75', ... Raises DeviceUnavailableError without NVRTC."""
    library, count = nvrtc(), c_int()
    _check(library, library.nvrtcGetNumSupportedArchs(byref(count)))
    supported = (c_int * count.value)()
    _check(library, library.nvrtcGetSupportedArchs(supported))
    return tuple(f"sm_{one}" for one in supported)


@cache
def nvrtc() -> ctypes.CDLL:
    """Return the library of a pip package, of a toolkit, or of the system's search path."""
    for candidate in (*_installed(), *_NAMES):
        try:
            library = ctypes.CDLL(str(candidate), mode=ctypes.RTLD_GLOBAL)
        except OSError:
            continue
        library.nvrtcGetErrorString.restype = c_char_p
        library.nvrtcCreateProgram.argtypes = [POINTER(c_void_p), c_char_p, c_char_p, c_int, c_void_p, c_void_p]
        library.nvrtcCompileProgram.argtypes = [c_void_p, c_int, POINTER(c_char_p)]
        return library
    raise DeviceUnavailableError(
        "NVRTC (libnvrtc.so) was not found in this Python environment, in /usr/local/cuda or by the loader; "
        "install it with: pip install nvidia-cuda-nvrtc"
    )


def _installed() -> list[Path]:
    spec = find_spec("nvidia")
    roots = [Path(root).parent for root in (spec.submodule_search_locations or ())] if spec else []
    folders = [root / package for root in roots for package in _PACKAGES] + [Path(folder) for folder in _TOOLKITS]
    return [folder / name for folder in folders for name in _NAMES if (folder / name).exists()]


def _fetch(library: ctypes.CDLL, handle: c_void_p, what: str) -> bytes:
    size = c_size_t()
    _check(library, library[f"nvrtcGet{what}Size"](handle, byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check(library, library[f"nvrtcGet{what}"](handle, text))
    return text.raw


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise CompileError(f"NVRTC failed: {library.nvrtcGetErrorString(status).decode()}")


def resources(log: str, image: bytes) -> Resources:
    """Return the resources of each entry, from the assembler's log and the cubin (image)."""
    _, *parts = re.split(r"Compiling entry function '(\w+)'", log)
    hazards = spill_hazards(image)
    entries = {
        name: replace(_entry(part), overtaken=hazards.get(name))
        for name, part in zip(parts[::2], parts[1::2], strict=True)
    }
    return Resources(entries=entries, code_bytes=len(image))


def _entry(log: str) -> Entry:
    """Return the largest figures of an entry and of the functions that it calls, from its part of the log."""
    return Entry(
        registers=_largest(r"Used (\d+) registers", log),
        spill_bytes=_largest(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log),
        local_bytes=_largest(r"(\d+) bytes stack frame", log),
        shared_bytes=_largest(r"(\d+) bytes smem", log),
    )


def _largest(pattern: str, log: str) -> int:
    """Return the largest match of a pattern in the log, its groups added."""
    return max((sum(map(int, match.groups())) for match in re.finditer(pattern, log)), default=0)
