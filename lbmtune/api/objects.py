"""Files with which a C or Fortran program uses a CPU kernel: object code, a header with a solver, a Fortran module."""

from collections.abc import Callable
from pathlib import Path

from lbmtune.backend.cpu import object_code, processor
from lbmtune.codegen.program import Program
from lbmtune.codegen.render import render, render_single
from lbmtune.export.c_header import Target, c_header, fortran_module, kernel_symbols, loop_symbols
from lbmtune.records.best_json.document import Best
from lbmtune.records.whole_files import write_atomically

HOST = "host"


def object_of(header: Path) -> Path:
    """Return the path of the object that belongs to a header."""
    return header.with_name(f"{header.stem}_kernel.o")


def write_object(best: Best, path: Path, name: str, target: str = HOST) -> None:
    """Write the header to a path, and beside it the object and the module of Fortran.

    name: prefix of the functions; target: processors, 'host', 'x86-64-v3' or 'x86-64-v4'. Raises
    InputError for a kernel that they cannot hold, an unknown target, or a path that cannot be written.
    """
    beside = object_of(path)
    text = c_header(best, name, Target(*processor(target)), path.name, beside.name)
    code = object_code(_named_programs(best, name), loop_symbols(name), target)
    write_atomically(path, text.encode())
    write_atomically(beside, code)
    write_atomically(path.with_suffix(".f90"), fortran_module(best, name, path.name, beside.name).encode())


def _named_programs(best: Best, name: str) -> list[tuple[Program, dict[str, str]]]:
    """Return the programs of the kernels with the names of their entries in the object."""
    program = render(best.case, best.config)
    made: dict[str, Callable[[], Program | None]] = {
        "kernel": lambda: program,
        "single": lambda: render_single(program),
    }
    named = ((made[space](), names) for space, names in kernel_symbols(best.kernel, name).items())
    return [(one, names) for one, names in named if one]
