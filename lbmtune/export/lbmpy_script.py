"""The kernel of a best.json as lbmpy has it: a program in Python that runs, and the same as data."""

from __future__ import annotations

import textwrap
from pathlib import Path
from string import Template

import msgspec

from lbmtune.codegen.skeleton import skeleton
from lbmtune.errors import InputError
from lbmtune.export.lbmpy_terms import Terms, as_data, in_python, terms
from lbmtune.printable import plain
from lbmtune.records.best_json.document import Best
from lbmtune.records.whole_files import write_atomically

FORMAT, VERSION = "lbmtune.lbmpy", 1
_WIDTH = 118


def write_lbmpy(best: Best, path: Path) -> None:
    """Write the program, .py, and beside it the same as data, .json.

    Raises InputError for another suffix, or if it cannot be written.
    """
    if path.suffix != ".py":
        raise InputError(f"{path} does not end in .py; the program is written there, and the same as data to .json.")
    found = terms(best.case, best.config)
    write_atomically(path, program(best, found, path.name).encode())
    write_atomically(path.with_suffix(".json"), _data(best, found).encode())


def program(best: Best, found: Terms, file: str) -> str:
    """Return the text of the program. file: its name."""
    case, size = best.case, best.case.stencil.dimensions
    return Template(skeleton("export/lbmpy/box.py.in")).substitute(
        title=f"{case.lattice} {case.collision}",
        file=plain(file),
        study=plain(best.study),
        key=plain(best.key),
        version=plain(best.lbmtune),
        lacks="\n".join(map(_item, found.lacks or ("nothing",))),
        domain=case.domain[:size],
        stencil=found.stencil,
        method="\n".join(f"    {name}={in_python(value)}," for name, value in found.method.items()),
        pattern=found.pattern,
        layout=found.layout,
        stored=found.stored,
        computed=found.computed,
        on_gpu=found.on_gpu,
        block=found.block,
        threads=found.threads or None,
        simd=found.simd,
        streaming=found.streaming,
    )


def _item(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="- ", subsequent_indent="  ")


def _data(best: Best, found: Terms) -> str:
    told = {
        "format": FORMAT,
        "version": VERSION,
        "study": best.study,
        "key": best.key,
        "domain": best.case.domain,
        **as_data(found),
        "lbmtune": best.lbmtune,
    }
    return msgspec.json.format(msgspec.json.encode(told)).decode() + "\n"
