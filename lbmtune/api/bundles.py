"""A folder with all that another project needs of a kernel: data, header, CMake target, test program, compiled code."""

from __future__ import annotations

from pathlib import Path
from string import Template

from lbmtune.api.objects import HOST, write_object
from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.protocol import CompileError
from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.export.cuda_header import cuda_header, nvcc_options
from lbmtune.printable import plain
from lbmtune.records.best_json.document import Best, encode_best
from lbmtune.records.whole_files import write_atomically

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
"""GPUs that modules are compiled for, as far as the installed NVRTC knows them and the kernel runs there."""
MODULES = "modules"


def write_bundle(best: Best, folder: Path, name: str) -> tuple[str, ...]:
    """Write the files of a kernel to a folder, and return the names of its compiled modules, which replace others.

    Raises InputError if a header cannot hold the kernel, if the folder cannot be written, or if it does not compile for
    any of the architectures; DeviceUnavailableError without NVRTC.
    """
    texts = {
        f"{name}.h": cuda_header(best, name, f"{name}.h"),
        f"{name}.cu": f'#define {name.upper()}_IMPLEMENTATION\n#include "{name}.h"\n',
        "CMakeLists.txt": _filled(best, name, "CMakeLists.txt"),
        "check.cpp": _filled(best, name, "check.cpp"),
        "best.json": encode_best(best).decode(),
    }
    modules = _modules(best)
    try:
        (folder / MODULES).mkdir(parents=True, exist_ok=True)
        for earlier in {*(folder / MODULES).glob("*.cubin"), *(folder / MODULES).glob("*.ptx")}:
            earlier.unlink()
    except OSError as error:
        raise _unwritable(folder, error) from error
    for file, text in texts.items():
        write_atomically(folder / file, text.encode())
    for file, image in modules.items():
        write_atomically(folder / MODULES / file, image)
    return tuple(modules)


def write_cpu_bundle(best: Best, folder: Path, name: str, target: str = HOST) -> None:
    """Write the files of a CPU kernel to a folder: what `write_object` writes, the implementation, and a CMake target.

    Raises InputError as `write_object` does.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from error
    write_object(best, folder / f"{name}.h", name, target)
    texts = {
        f"{name}.c": f'#define {name.upper()}_IMPLEMENTATION\n#include "{name}.h"\n',
        "CMakeLists.txt": _filled(best, name, "CMakeLists.cpu.txt"),
        "check.cpp": _filled(best, name, "check.cpp"),
        "best.json": encode_best(best).decode(),
    }
    for file, text in texts.items():
        write_atomically(folder / file, text.encode())


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(f"cannot write {folder}: {error.strerror}; give another --output.")


def _filled(best: Best, name: str, file: str) -> str:
    case = best.case
    nx, ny, nz = case.domain
    speed = f"{best.expected.mlups:,.0f} in the study, on {plain(best.environment.device)} and {nx} x {ny} x {nz} cells"
    return Template(skeleton(f"export/bundle/{file}.in")).substitute(
        name=name,
        options=" ".join(one for one in nvcc_options(best.kernel.options) if not one.startswith("-std")),
        nx=nx,
        ny=ny,
        nz=nz,
        solid_cells="cells" if case.geometry else "0",
        expected=speed,
    )


def _modules(best: Best) -> dict[str, bytes]:
    """Return modules by file name: the entries as best.json names them, for each architecture. Raises InputError."""
    texts = {"kernel": (best.kernel.source, best.kernel.options)}
    if best.kernel.single:
        texts["single"] = best.kernel.single.source, best.kernel.single.options
    known, found, failed = nvrtc.architectures(), dict[str, bytes](), ""
    for architecture in (one for one in ARCHITECTURES if one in known):
        try:
            found |= _compiled(texts, architecture)
        except CompileError as error:  # of instructions that this architecture does not have
            failed = str(error)
    if not found:
        why = failed or f"this one knows {', '.join(known)}."
        raise InputError(f"the kernel compiles for none of {', '.join(ARCHITECTURES)} (use a newer NVRTC): {why}")
    return found


def _compiled(texts: dict[str, tuple[str, tuple[str, ...]]], architecture: str) -> list[tuple[str, bytes]]:
    number, found = architecture.removeprefix("sm_"), []
    for name, (source, options) in texts.items():
        for product, real in (("CUBIN", architecture), ("PTX", f"compute_{number}")):
            _, image = nvrtc.product_of(source, (*options, f"--gpu-architecture={real}"), product)
            found.append((f"{name}.{architecture}.{product.lower()}", image))
    return found
