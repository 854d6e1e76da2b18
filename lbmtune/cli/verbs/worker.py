"""The verb worker: help a study that several processes share."""

from __future__ import annotations

from typing import Annotated

import typer

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.cli.arguments.numbers import time_s
from lbmtune.cli.arguments.options import Device, Json
from lbmtune.cli.format import output


def worker(
    study: Annotated[str, typer.Option("--study", metavar="NAME", help="the study, by the beginning of its name")],
    storage: Annotated[
        str,
        typer.Option("--storage", metavar="URL", help="database that study --storage wrote to, or grpc://HOST:PORT"),
    ],
    device: Device = None,
    time: Annotated[
        float | None,
        typer.Option("--time", metavar="TIME", help="end after this time: 90s, 5m, 1h", parser=time_s("--time")),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait", metavar="TIME", help="wait this long for a study to begin: 90s, 5m", parser=time_s("--wait")
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure for a study that was begun with --storage, until its search is over."""
    with formats.Progress(output.stderr()) as progress:
        trials = api.work(study, storage, device, seconds=time or 0.0, wait_s=wait or 0.0, observer=progress)
    if as_json:
        output.emit_json({"study": study, "trials": trials})
    else:
        output.stdout().print(f"{trials} trials for {study}", markup=False)
