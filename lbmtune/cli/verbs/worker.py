"""The verb worker: help a study that several processes share."""

from __future__ import annotations

from typing import Annotated

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.cli.arguments.options import Device, Json, duration, option
from lbmtune.cli.format import output


def worker(
    study: Annotated[str, option("--study", "NAME", "the study, by the beginning of its name")],
    storage: Annotated[str, option("--storage", "URL", "database that study --storage wrote to, or grpc://HOST:PORT")],
    device: Device = None,
    time: Annotated[float | None, duration("--time", "end after this time: 90s, 5m, 1h")] = None,
    wait: Annotated[float | None, duration("--wait", "wait this long for a study to begin: 90s, 5m")] = None,
    as_json: Json = False,
) -> None:
    """Measure for a study that was begun with --storage, until its search is over.

    Examples:
        lbmtune worker --study box --storage postgresql://me@server/tuning --wait 5m
    """
    with formats.Progress(output.stderr()) as progress:
        trials = api.work(study, storage, device, seconds=time or 0.0, wait_s=wait or 0.0, observer=progress)
    if as_json:
        output.emit_json("worker", {"study": study, "trials": trials})
    else:
        output.stdout().print(f"{trials} trials for {study}", markup=False)
