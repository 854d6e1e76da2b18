"""Object code of CPU kernels with its C header, compiled into a library and compared as headers of a GPU are."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lbmtune.api.objects import HOST, write_object
from lbmtune.catalogue.config import CpuConfig, cpu
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import box, cavity, porous
from lbmtune.records.best_json.document import Best
from tests.support.kernels.headers import declared

C_COMPILER = shutil.which("gcc") or shutil.which("clang")
STRICT = ("-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror")
_ROWS = cpu.Direct(threads=2, row_offset=1)


def _cavity(collision: str) -> Case:
    return cavity("d3q19", collision, (64, 16, 12), 1.3)


def _box(collision: str = "bgk") -> Case:
    return box("d3q19", collision, (64, 16, 12), 1.3)


KINDS: dict[str, tuple[Case, CpuConfig]] = {
    "in place, halves, flags in memory": (
        _cavity("bgk"),
        replace(_ROWS, scheme="aa", storage="fp16s", flags="memory"),
    ),
    "sites listed": (porous("d3q19", "bgk", (64, 16, 12), 1.2, "blocks:fraction=0.3"), cpu.Sparse(threads=2)),
    "any steps of a wavefront": (_cavity("bgk"), cpu.Wavefront(threads=2, row_offset=1)),
    "three steps of moments": (_cavity("regularised"), cpu.MomentsWavefront(threads=2, tile=(64, 16, 8), steps=3)),
}
"""One kernel of each kind that a solver calls in a way of its own, with its case."""
MORE: dict[str, tuple[Case, CpuConfig]] = {
    "starts of slots exchanged": (_box("trt"), replace(_ROWS, scheme="esoteric-twist", pointer_swap=1)),
    "doubles, touched in parallel": (
        _box(),
        replace(_ROWS, scheme="push", storage="fp64", compute="fp64", first_touch="parallel", pages="huge"),
    ),
    "codes of bf16": (_cavity("bgk"), replace(_ROWS, scheme="esoteric-pull", storage="bf16")),
    "tiles with rings": (_cavity("trt"), replace(_ROWS, scheme="ghost-cell", parallel_loop="tile-3x2")),
    "rows in order": (_cavity("bgk"), replace(_ROWS, scheme="swap-ordered")),
    "one thread": (_box(), replace(_ROWS, scheme="pull", threads=1, pages="normal")),
}


def exported(found: Best, folder: Path, target: str = HOST) -> None:
    """Write header and object of a kernel, whose functions are called `made_*`, and the file of the implementation."""
    write_object(found, folder / "made.h", "made", target)
    (folder / "made.c").write_text('#define MADE_IMPLEMENTATION\n#include "made.h"\n')


def linked(folder: Path, options: Sequence[str] = (*STRICT, "-fopenmp"), compiler: str | None = None) -> ctypes.CDLL:
    """Return the library of what was exported to a folder."""
    command = [str(compiler or C_COMPILER), *options, "-O0", "-fPIC", "-shared", "made.c", "made_kernel.o", "-lm"]
    done = subprocess.run([*command, "-o", "made.so"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return declared(ctypes.CDLL(str(folder / "made.so")))
