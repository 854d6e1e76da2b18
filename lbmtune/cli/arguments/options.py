"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="DEVICE",
        help="cpu, or the index of a GPU (default: what the knobs need, else GPU 0 if there is one, else cpu)",
    ),
]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="override a field of the study file: storage=fp64, case.domain=128x128x128"
    ),
]
Study = Annotated[
    str | None,
    typer.Option(
        "--study",
        metavar="STUDY",
        help="study file, shipped study or study folder that gives the case (default: quick)",
    ),
]
Machine = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME|FILE",
        help="a device that need not be here: h200, h100, a100, v100, k20, or a file that describes it",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print the facts as JSON on standard output, and nothing else")]
Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="folder that holds the study folders")]
Config = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="best.json, the key of a trial or (with --study) of a ranking, or scheme=aa,block=256x1x1,...",
    ),
]
Folder = Annotated[str, typer.Argument(metavar="STUDY", help="a study folder, or its name under --out")]
