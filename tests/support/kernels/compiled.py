"""Results of NVRTC for a text, from a golden file where the same version made it of the same text before.

Compiling is a pure function of text, options, architecture and version, and the dearest that tests do. So what a kernel
takes is kept beside a digest of its text. A text that is not among them is compiled, and so is one in sixteen that is,
which has to come out as it is written there. Where LBMTUNE_REWRITE_GOLDEN is set, every text is compiled and written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from lbmtune.backend.cuda import nvrtc
from lbmtune.catalogue.limits import extents
from lbmtune.codegen.program import Program
from lbmtune.records import Resources
from tests.support.paths import ROOT

FOLDER = ROOT / "tests" / "golden" / "resources"
REWRITE = "LBMTUNE_REWRITE_GOLDEN"
_DIGITS = 16


class Kept(NamedTuple):
    """A line of a file: the first digits of the text's digest, and what was made of it."""

    digest: str
    registers: int
    spill_bytes: int
    local_bytes: int
    shared_bytes: int
    code_bytes: int

    @property
    def resources(self) -> Resources:
        return Resources(**{name: value for name, value in self._asdict().items() if name != "digest"})


def resources(
    file: str, program: Program, architecture: str = "sm_90", *, name: str = "", again: bool = False
) -> Resources:
    """What a program takes when it is compiled. Raises CompileError.

    file: in the folder, one for each test module; name: of the line there, beside the architecture, in place of case
    and configuration; again: whether a text that is known is compiled in any case.
    """
    key, digest = f"{architecture} {name or _named(program)}", program.digest[:_DIGITS]
    rewrite, known = bool(os.environ.get(REWRITE)), _known(file).get(key)
    if known and known.digest == digest and not (rewrite or again or digest.endswith("0")):
        return known.resources
    found = nvrtc.compile_cuda(program, architecture).resources
    made = Kept(digest, *(getattr(found, figure) for figure in Kept._fields[1:]))
    if rewrite:
        _write(file, {**_known(file), key: made})
    assert rewrite or known is None or known.digest != digest or known == made, f"{key}: {known}, and now {made}"
    return found


def ptx(program: Program, architecture: str = "compute_90") -> str:
    """The PTX of a program, which shows the width of loads and stores."""
    _, image = nvrtc.product_of(program.source, (*program.options, f"--gpu-architecture={architecture}"), "PTX")
    return image.rstrip(b"\0").decode()


@cache
def kept(file: str) -> Mapping[str, Kept]:
    """The lines of a file by architecture and name."""
    path = FOLDER / file
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return {name: _parse(figures) for name, figures in (line.split(": ") for line in lines)}


@cache
def version(file: str) -> str:
    """Of NVRTC, that made what a file has."""
    path = FOLDER / file
    return path.read_text().partition("\n")[0] if path.exists() else ""


def _named(program: Program) -> str:
    case = program.case
    return f"{case.lattice} {case.flow} {case.collision} {extents(case.domain)} {program.config.brief}"


def _known(file: str) -> Mapping[str, Kept]:
    """What this version made."""
    return kept(file) if version(file) == _version() else {}


def _parse(figures: str) -> Kept:
    digest, *numbers = figures.split()
    return Kept(digest, *map(int, numbers))


@cache
def _version() -> str:
    return f"NVRTC {{}}.{{}}: {', '.join(Kept._fields)}".format(*nvrtc.version())


def _write(file: str, lines: Mapping[str, Kept]) -> None:
    FOLDER.mkdir(exist_ok=True)
    text = "".join(f"{name}: {' '.join(map(str, lines[name]))}\n" for name in sorted(lines))
    (FOLDER / file).write_text(f"{_version()}\n{text}")
    kept.cache_clear()
    version.cache_clear()
