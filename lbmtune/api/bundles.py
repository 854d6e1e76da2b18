"""A folder with all that another project needs of a kernel: data, header, CMake target, test program, modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from string import Template

from lbmtune.backend.cuda import nvrtc
from lbmtune.backend.protocol import CompileError
from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.export.cuda_header import cuda_header, nvcc_options
from lbmtune.records.best import Best, encode_best
from lbmtune.records.store import write_atomically

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")
"""GPUs that modules are compiled for, as far as the installed NVRTC knows them and the kernel runs there."""
MODULES = "modules"


def write_bundle(best: Best, folder: Path, name: str) -> tuple[str, ...]:
    """Write the files of a kernel to a folder, and return the names of its compiled modules.

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
    modules = dict(_modules(best))
    if not modules:
        raise InputError(
            f"the kernel compiles for none of {', '.join(ARCHITECTURES)} (use a newer NVRTC): "
            f"this one knows {', '.join(nvrtc.architectures())}."
        )
    try:
        (folder / MODULES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror}; give another --output.") from error
    for file, text in texts.items():
        write_atomically(folder / file, text.encode())
    for file, image in modules.items():
        write_atomically(folder / MODULES / file, image)
    return tuple(modules)


def _filled(best: Best, name: str, file: str) -> str:
    case = best.case
    nx, ny, nz = case.domain
    speed = f"{best.expected.mlups:,.0f} in the study, on {best.environment.device} and {nx} x {ny} x {nz} cells"
    return Template(skeleton(f"export/bundle/{file}.in")).substitute(
        name=name,
        options=" ".join(one for one in nvcc_options(best.kernel.options) if not one.startswith("-std")),
        nx=nx,
        ny=ny,
        nz=nz,
        solid_cells="cells" if case.geometry else "0",
        expected=speed.replace("%", "%%").replace('"', '\\"'),
    )


def _modules(best: Best) -> Iterator[tuple[str, bytes]]:
    """Yield the file names and contents of modules: the entries as best.json names them, for each architecture."""
    texts = {"kernel": (best.kernel.source, best.kernel.options)}
    if best.kernel.single:
        texts["single"] = best.kernel.single.source, best.kernel.single.options
    known = nvrtc.architectures()
    for architecture in (one for one in ARCHITECTURES if one in known):
        try:
            yield from _compiled(texts, architecture)
        except CompileError:  # of instructions that this architecture does not have
            continue


def _compiled(texts: dict[str, tuple[str, tuple[str, ...]]], architecture: str) -> list[tuple[str, bytes]]:
    number, found = architecture.removeprefix("sm_"), []
    for name, (source, options) in texts.items():
        for product, real in (("CUBIN", architecture), ("PTX", f"compute_{number}")):
            _, image = nvrtc.product_of(source, (*options, f"--gpu-architecture={real}"), product)
            found.append((f"{name}.{architecture}.{product.lower()}", image))
    return found
