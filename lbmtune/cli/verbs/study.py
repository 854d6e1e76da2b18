"""The verb study: search the fastest kernel."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.machines.devices import chosen, place, several
from lbmtune.api.studies.folders import new_folder
from lbmtune.backend.registry import backend_of
from lbmtune.cli.arguments import study_options
from lbmtune.cli.arguments.configs import settled
from lbmtune.cli.arguments.kernels import of_catalogue, own_study
from lbmtune.cli.arguments.options import Device, Geometry, Json, PartsOfOne, Sets
from lbmtune.cli.begun import begun_s
from lbmtune.cli.format import output
from lbmtune.cli.format.studies.finished import print_study
from lbmtune.cli.format.studies.foreseen import print_foreseen
from lbmtune.cli.verbs.portfolio import search_portfolio
from lbmtune.errors import DeviceUnavailableError, InputError, NothingValidError
from lbmtune.files.studyfile import base_study, check_acts, load_study, overridden
from lbmtune.records.parts import AUTO, PartsAsked, ranked_parts
from lbmtune.records.portfolio_store import holds_portfolio
from lbmtune.records.remarks import race_text, speed_doubts, too_much_power
from lbmtune.records.spec import StudySpec
from lbmtune.records.store import read_study
from lbmtune.records.study import StudyRecord
from lbmtune.records.whole_files import HEADER
from lbmtune.search.pareto import figures, members

if TYPE_CHECKING:
    from lbmtune.api import Study
    from lbmtune.api.studies.foresight import Foreseen

LOG = logging.getLogger("lbmtune")
_NONE = "none"
"""The word for no earlier study."""


def study(
    study_file: study_options.StudyFile = None,
    kernel: study_options.KernelFile = None,
    device: Device = None,
    devices: study_options.SideBySide = None,
    parts: PartsOfOne = None,
    cut: study_options.CutOverParts = None,
    weak: study_options.Weak = False,
    trials: study_options.Trials = None,
    time: study_options.WholeTime = None,
    search_time: study_options.SearchTime = None,
    objective: study_options.Objective = None,
    max_footprint: study_options.MaxFootprint = None,
    max_error: study_options.MaxError = None,
    max_power: study_options.MaxPower = None,
    target: study_options.TargetShare = None,
    strategy: study_options.Strategy = None,
    domain: study_options.Domain = None,
    domains: study_options.Domains = None,
    lattice: study_options.Lattice = None,
    collision: study_options.Collision = None,
    flow: study_options.Flow = None,
    families: study_options.FamilyNames = None,
    resume: study_options.Resume = False,
    folder: study_options.OutputFolder = None,
    sets: Sets = None,
    seed: study_options.Seed = None,
    storage: study_options.OptunaStorage = None,
    geometry: Geometry = None,
    scratch: study_options.Scratch = None,
    refresh: study_options.Refresh = False,
    no_calibration: study_options.NoCalibration = False,
    sources: study_options.Earlier = None,
    live: study_options.Live = False,
    dry_run: study_options.DryRun = False,
    as_json: Json = False,
) -> None:
    """Search the fastest kernel; write report.html and best.json.

    Examples:
        lbmtune study
        lbmtune study box --domain 256x256x256 --time 10m
        lbmtune study box --time 10m --dry-run
        lbmtune study my-flow.toml --device 0 --trials 100
        lbmtune study --kernel my_step.c --trials 30
    """
    options = {"objective": objective, "seed": seed, "budget.trials": trials, "budget.time": time}
    options |= {"budget.search_time": search_time, "budget.target": target, "strategy": strategy}
    options |= {"limits.footprint": max_footprint, "limits.error": max_error, "limits.power": max_power}
    case = {"case.domain": domain, "case.lattice": lattice, "case.collision": collision, "case.flow": flow}
    case |= {"families": families}
    options |= case
    given = {key: value for key, value in options.items() if value is not None}
    overrides = [*(sets or ()), *(f"{key}={value}" for key, value in given.items())]
    if device is not None and devices is not None:
        raise InputError(f"--devices {devices} does not go with --device {device}; leave one of them out.")
    own = None
    if kernel is not None:
        unfit: dict[str, object] = {
            "STUDY": study_file,
            "--geometry": geometry,
            "--storage": storage,
            "--cut": cut,
            "--parts": parts,
        }
        with _as_given(given):
            unfit |= {"--from": sources, "--scratch": scratch, "--domains": domains}
            own = own_study(kernel, unfit, overrides, several(devices)[0] if devices is not None else device)
    where, *others = several(devices) if devices is not None else (chosen(device, own.kernel_backend if own else None),)
    asked_parts = _parts((where, *others), parts, cut, weak=weak)
    if domains is not None or (resume and folder and holds_portfolio(folder)):
        alone = {
            "--devices": others,
            "--parts": asked_parts,
            "--storage": storage,
            "--from": sources,
            "--domain": domain,
            "--live": live,
            "--dry-run": dry_run,
        }
        _check_alone(domains, alone)
        with _as_given(given):
            search_portfolio(
                study_file,
                domains,
                where,
                folder,
                overrides=overrides,
                case_given=any(case.values()),
                resume=resume,
                refresh=refresh,
                calibrate=not no_calibration,
                as_json=as_json,
            )
        return
    with _as_given(given):
        if own:
            spec = own
        elif resume and folder and study_file is None:
            spec = overridden(settled(of_catalogue(read_study(folder).header.spec, folder), geometry), overrides)
        else:
            spec = settled(_asked(study_file, overrides, case_given=any(case.values())), geometry)
    if own is None:
        check_acts(sets or (), backend_of(where), place(where))
    on = ("--device", where) if devices is None else ("--devices", devices)
    asked = (*on, *_parts_options(parts, cut, weak=weak))
    folder = folder or new_folder(spec.name, where, resume=resume)
    if dry_run:
        foreseen = api.foreseen(spec, where, folder, resume=resume, parts=asked_parts, sources=_sources(sources))
        _foresee(foreseen, as_json)
        return
    try:
        console = output.stderr()
        with formats.LiveProgress(console, folder) if live else formats.Progress(console) as progress:
            found = api.study(
                spec,
                where,
                folder,
                resume=resume,
                storage=storage,
                others=others,
                parts=asked_parts,
                refresh=refresh,
                calibrate=not no_calibration,
                sources=_sources(sources),
                observer=progress,
                scratch=scratch,
                begun_s=begun_s(),
            )
        written = _show(found, as_json)
        if isinstance(progress, formats.LiveProgress):
            progress.lead_to(written)
    except KeyboardInterrupt:
        kept = _stopped(asked, folder, storage)
        if kept and kept.record.winner:
            _show(kept, as_json)
        raise typer.Exit(130) from None
    except DeviceUnavailableError:
        if (folder / HEADER).exists():
            _stopped(asked, folder, storage)
        raise


def _foresee(found: Foreseen, as_json: bool) -> None:
    if as_json:
        output.emit_json("study-dry-run", found.facts())
    else:
        print_foreseen(found, api.case_summary(found.spec.case))


def _check_alone(domains: str | None, others: Mapping[str, object]) -> None:
    """Refuse options that do not go with those of many domains. Raises InputError."""
    if wrong := next((name for name, value in others.items() if value), ""):
        raise InputError(
            f"--domains {domains or ''} does not go with {wrong}; leave one of them out.".replace("  ", " ")
        )


def _parts(where: tuple[str, ...], parts: int | None, cut: str | None, *, weak: bool) -> PartsAsked | None:
    """Return what is asked of several devices; None for a study on one, or for trials side by side."""
    if len(where) > 1 and parts is not None:
        raise InputError(f"--parts {parts} does not go with --devices {','.join(where)}; leave one of them out.")
    if parts is None and cut is None:
        if weak:
            raise InputError("--weak goes with --cut or --parts; add one of them.")
        return None
    return PartsAsked(devices=where * (parts or 1), cut=cut or AUTO, weak=weak)


def _parts_options(parts: int | None, cut: str | None, *, weak: bool) -> tuple[str, ...]:
    """Return the options of a study on several devices."""
    asked = ("--parts", str(parts)) if parts is not None else ()
    return (*asked, *(("--cut", cut) if cut is not None else ()), *(("--weak",) if weak else ()))


@contextmanager
def _as_given(options: Iterable[str]) -> Iterator[None]:
    """Name options in errors, in place of the keys of a study file that they set: --time, not --set budget.time."""
    try:
        yield
    except InputError as error:
        text = str(error)
        for key in options:
            last = key.rpartition(".")[2].replace("_", "-")
            flag = f"--max-{last}" if key.startswith("limits.") else f"--{last}"
            text = text.replace(f"--set {key}: ", f"{flag}: ")
        raise InputError(text) from error


def _sources(given: list[str] | None) -> list[str] | None:
    """Return the studies of --from; none for that word. Raises InputError for both."""
    if given and _NONE in given:
        if given != [_NONE]:
            raise InputError(f"--from {_NONE} is not supported beside other studies (leave either out).")
        return []
    return given


def _asked(study: str | None, overrides: list[str], *, case_given: bool) -> StudySpec:
    """Return the study of a file or of a name; without one `quick`, or the base of a case that options give."""
    if study is None and case_given:
        return base_study(overrides)
    return load_study("quick" if study is None else study, overrides)


def _show(found: Study, as_json: bool) -> Path:
    """Write best.json and the report, print what was found, and return the report.

    Raises NothingValidError if there is no winner.
    """
    try:
        best = found.export() if found.record.winner else None  # first: it is what a solver waits for
        written = found.report()
    except InputError as error:
        if found.record.winner and not as_json:
            print_study(found.record)
        again = f"lbmtune export {found.folder} and lbmtune report {found.folder} write them again"
        raise InputError(f"{error} Nothing is lost: {again}.") from error
    if as_json:
        output.emit_json("study", _facts(found.record, found.folder, written, best))
    elif best:
        print_study(found.record, written, best)
    if best is None:
        raise NothingValidError(f"{api.nothing_valid(found.record)} The report is {written}.")
    return written


def _stopped(device: tuple[str, ...], folder: Path, storage: str | None) -> Study | None:
    """Write the best and the report of a study that was ended early, say how it goes on, and return it."""
    kept = None
    if not (folder / HEADER).exists():
        LOG.info("stopped before the first trial; nothing was kept. Begin again with the same command.")
        return None
    again = ["lbmtune", "study", *device, "--output", str(folder), "--resume"]
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
        "case": record.header.spec.case,
        "machine": record.header.environment.device,
        "report": str(report),
        "best": str(best) if best else None,
        "trials": len(record.trials),
        "legal_configurations": record.header.legal_configurations,
        "illegal_configurations": record.header.illegal_configurations,
        "stopped": record.header.stopped,
        "left_out": record.header.left_out,
        "finals": race_text(record),
        "doubts": speed_doubts(record),
        "on_parts": ranked_parts(record.on_parts),
        "limits": record.header.spec.limits,
        "pareto": [
            {
                "member": place,
                "number": trial.number,
                "key": trial.key,
                "config": trial.config,
                **figures(record, trial),
            }
            for place, trial in enumerate(members(record), 1)
        ],
        "over_the_power": too_much_power(record),
        "costs": record.costs,
        "winner": record.winner,
        "share_of_ceiling": record.share_of_ceiling(record.winner) if record.winner else None,
    }
