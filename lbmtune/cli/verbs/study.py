"""The verb study: search the fastest kernel."""

from __future__ import annotations

import logging
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.devices import chosen, place
from lbmtune.api.folders import new_folder
from lbmtune.backend.registry import backend_of
from lbmtune.cli.arguments.configs import settled
from lbmtune.cli.arguments.numbers import time_s, whole
from lbmtune.cli.arguments.options import Device, Geometry, Json, Sets
from lbmtune.cli.format import output
from lbmtune.cli.format.study import print_study
from lbmtune.errors import DeviceUnavailableError, NothingValidError
from lbmtune.files.ranges import SEED, TRIALS
from lbmtune.files.studyfile import check_acts, load_study, overridden
from lbmtune.records.store import HEADER, read_study
from lbmtune.records.study import StudyRecord
from lbmtune.search.clock import process_begun_s

if TYPE_CHECKING:
    from lbmtune.api import Study

LOG = logging.getLogger("lbmtune")


def study(
    study_file: Annotated[
        str | None, typer.Argument(metavar="STUDY", help="study file, or a shipped study (default: quick)")
    ] = None,
    device: Device = None,
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", help="end after N trials", parser=whole("--trials", TRIALS, 100)),
    ] = None,
    time: Annotated[
        float | None,
        typer.Option(
            "--time",
            metavar="TIME",
            help="time of the whole, from the start to the last file: 90s, 5m, 1h",
            parser=time_s("--time"),
        ),
    ] = None,
    search_time: Annotated[
        float | None,
        typer.Option("--search-time", metavar="TIME", help="limit of the trials alone", parser=time_s("--search-time")),
    ] = None,
    objective: Annotated[str | None, typer.Option("--objective", metavar="NAME", help="mlups or footprint")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the study in the output folder")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FOLDER", help="default: one under lbmtune-studies")
    ] = None,
    sets: Sets = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="seed of the search", parser=whole("--seed", SEED, 2))
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(
            "--storage", metavar="URL", help="where Optuna keeps its trials (default: a journal in the study folder)"
        ),
    ] = None,
    geometry: Geometry = None,
    scratch: Annotated[
        Path | None,
        typer.Option("--scratch", metavar="FOLDER", help="where a study with output writes its file (default: TMPDIR)"),
    ] = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="measure the device's bandwidths again first")] = False,
    as_json: Json = False,
) -> None:
    """Search the fastest kernel; write report.html and best.json."""
    options = {"objective": objective, "seed": seed, "budget.trials": trials, "budget.time": time}
    options |= {"budget.search_time": search_time}
    overrides = [*(sets or ()), *(f"{key}={value}" for key, value in options.items() if value is not None)]
    where = chosen(device)
    if resume and out and study_file is None:
        spec = overridden(settled(read_study(out).header.spec, geometry), overrides)
    else:
        spec = settled(load_study("quick" if study_file is None else study_file, overrides), geometry)
    check_acts(sets or (), backend_of(where), place(where))
    folder = out or new_folder(spec.name, where, resume=resume)
    try:
        with formats.Progress(output.stderr()) as progress:
            found = api.study(
                spec,
                where,
                folder,
                resume=resume,
                storage=storage,
                refresh=refresh,
                observer=progress,
                scratch=scratch,
                begun_s=process_begun_s(),
            )
        _show(found, as_json)
    except KeyboardInterrupt:
        kept = _stopped(where, folder, storage)
        if kept and kept.record.winner:
            _show(kept, as_json)
        raise typer.Exit(130) from None
    except DeviceUnavailableError:
        if (folder / HEADER).exists():
            _stopped(where, folder, storage)
        raise


def _show(found: Study, as_json: bool) -> None:
    """Write best.json and the report, and print what was found. Raises NothingValidError if there is no winner."""
    best = found.export() if found.record.winner else None  # first: it is what a solver waits for
    written = found.report()
    if as_json:
        output.emit_json(_facts(found.record, found.folder, written, best))
    elif best:
        print_study(found.record, written, best)
    if best is None:
        raise NothingValidError(f"{api.nothing_valid(found.record)} The report is {written}.")


def _stopped(device: str, folder: Path, storage: str | None) -> Study | None:
    """Write the best and the report of a study that was ended early, say how it goes on, and return it."""
    kept = None
    if not (folder / HEADER).exists():
        LOG.info("stopped before the first trial; nothing was kept. Begin again with the same command.")
        return None
    again = ["lbmtune", "study", "--device", device, "--out", str(folder), "--resume"]
    again += ["--storage", api.without_password(storage)] if storage else []
    try:
        with suppress(KeyboardInterrupt):  # of one who does not wait for it
            if (kept := api.Study(folder)).ranked:
                LOG.info("the report so far is %s", kept.report())
                LOG.info("the best kernel so far is in %s", kept.export())
    finally:
        LOG.info("stopped; every finished trial is in %s. Go on with: %s", folder, shlex.join(again))
    return kept


def _facts(record: StudyRecord, folder: Path, report: Path, best: Path | None) -> dict[str, Any]:
    return {
        "study": str(folder),
        "report": str(report),
        "best": str(best) if best else None,
        "trials": len(record.trials),
        "legal_configurations": record.header.legal_configurations,
        "illegal_configurations": record.header.illegal_configurations,
        "costs": record.costs,
        "winner": record.winner,
        "share_of_ceiling": record.share_of_ceiling(record.winner) if record.winner else None,
    }
