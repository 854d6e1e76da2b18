"""The verb kernel: begin with a kernel of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from lbmtune.cli.format import output
from lbmtune.errors import InputError
from lbmtune.files.kerneltemplate import write_template

_ACTIONS = ("init",)


def kernel(
    action: Annotated[str, typer.Argument(metavar="init", help="init: write a description to fill in")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="the kernel, .c or .cu; it is read, not run")],
) -> None:
    """Write the description of a kernel of your own.

    It lies beside the kernel, as .toml: entry and arguments as they are in the text, and examples of what to fill in.

    Examples:
        lbmtune kernel init my_step.c
    """
    if action not in _ACTIONS:
        raise InputError(f"kernel {action} is not supported (use kernel init FILE): there is no other action.")
    path, left = write_template(file)
    console = output.stdout()
    console.print(f"wrote {path}", markup=False)
    for one in left:
        console.print(f"to do: {one}", markup=False)
