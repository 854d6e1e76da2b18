"""Export the kernel of a best.json: a header, object code, a folder of both with a test, or a program of lbmpy."""

from __future__ import annotations

import logging
from pathlib import Path

from lbmtune.api.bundles import write_bundle, write_cpu_bundle
from lbmtune.api.objects import HOST, write_object
from lbmtune.catalogue.backends import BACKENDS
from lbmtune.errors import InputError
from lbmtune.export.cuda_header import write_cuda_header
from lbmtune.export.lbmpy_script import write_lbmpy
from lbmtune.export.solver_text import default_name
from lbmtune.records.best_json.document import Best, read_best
from lbmtune.runtime.load import check_text

LOG = logging.getLogger("lbmtune")
FORMATS = ("cuda", "c", "bundle", "lbmpy")
LBMPY = "best_lbmpy.py"


def export_best(
    path: Path, kind: str, output: Path | None = None, *, name: str | None = None, target: str | None = None
) -> Path:
    """Write what a solver takes of the kernel in a best.json, and return the path.

    kind: one of FORMATS; output: default beside the file; name: of the functions or the namespace; target: processors
    of object code. The text that is written is the one that this version makes of the configuration.
    Raises InputError if the file is damaged, holds another text or several kernels, or for a kernel that the format
    cannot hold.
    """
    if kind not in FORMATS:
        raise InputError(f"format={kind} is not supported for a best.json (use {', '.join(FORMATS)}): give its study.")
    found = read_best(path)
    if found.portfolio:
        raise InputError(f"{path} holds several kernels; give the folder of the portfolio.")
    check_text(found, path)
    chosen = name or default_name(found)
    place = output or path.parent / {"lbmpy": LBMPY, "bundle": chosen}.get(kind, f"{chosen}.h")
    write_kernel(found, kind, place, chosen, target)
    if not found.proven:
        LOG.warning(f"the kernel of {path} was not verified on the whole domain.")
    return place


def write_kernel(found: Best, kind: str, place: Path, name: str = "", target: str | None = None) -> None:
    """Write a kernel to a place in one of FORMATS. Raises InputError for a kernel that the format cannot hold."""
    if kind == "lbmpy":
        write_lbmpy(found, place)
    elif kind == "cuda":
        write_cuda_header(found, place, name)
    elif kind == "c":
        write_object(found, place, name, target or HOST)
    elif BACKENDS[found.kernel.target].shares_host:
        write_cpu_bundle(found, place, name, target or HOST)
    elif target:
        raise InputError(f"target={target} is not supported for a kernel of a GPU (leave it out): it has modules.")
    else:
        write_bundle(found, place, name)
