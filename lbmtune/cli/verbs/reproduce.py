"""Figures of others on the device at hand: reproduce, for published experiments or the speed of a best.json."""

import logging
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.machines.devices import chosen, folder_name, several
from lbmtune.api.studies.folders import RESULTS, check_begun
from lbmtune.claims.figures import figures
from lbmtune.claims.sizing import domain_texts
from lbmtune.claims.store import PAGE
from lbmtune.claims.store import RESULTS as STORED
from lbmtune.claims.tally import of_claims, of_questions
from lbmtune.cli.arguments.numbers import memory_bytes
from lbmtune.cli.arguments.options import Device, Geometry, Json, PartsOfOne, option, written
from lbmtune.cli.format import output
from lbmtune.cli.format.studies import remeasured
from lbmtune.errors import ChangedSpeedError, InputError, NothingValidError
from lbmtune.records.best_json.document import read_best
from lbmtune.records.claims import Claims
from lbmtune.records.regression.ratios import Verdict

BUDGET = "1GiB"
LOG = logging.getLogger("lbmtune")


def reproduce(
    best: Annotated[
        Path | None,
        typer.Argument(metavar="BEST", help="best.json whose speed is measured again (default: published experiments)"),
    ] = None,
    device: Device = None,
    devices: Annotated[
        str | None, option("--devices", "LIST", "experiments on several GPUs of one kind: 0,1 or all")
    ] = None,
    parts: PartsOfOne = None,
    only: Annotated[
        list[str] | None, option("--only", "NAME", "one document, or one file of it (default: all); may be repeated")
    ] = None,
    folder: Annotated[
        Path | None, written("FOLDER", "folder to write (default: claims-DEVICE under lbmtune-studies)")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="go on with the run in the output folder")] = False,
    max_footprint: Annotated[
        str, option("--max-footprint", "SIZE", "memory for experiments on the largest domain, in place of the device's")
    ] = BUDGET,
    geometry: Geometry = None,
    as_json: Json = False,
) -> None:
    """Reproduce published experiments on the device and judge their claims, or the speed of a best.json.

    The kernel of a best.json is timed in turns with the default configuration. Exit code 4 if its speed does not hold
    within the noise, with what may be the cause.

    Examples:
        lbmtune reproduce --device 0 --only robertsen2018
        lbmtune reproduce best.json
    """
    if best is not None:
        _check_alone(
            best,
            devices=devices,
            parts=parts,
            only=only,
            output=folder,
            resume=resume,
            max_footprint=max_footprint != BUDGET,
        )
        show_speed(best, device, geometry, as_json=as_json)
        return
    if geometry is not None:
        raise InputError(f"--geometry {geometry} goes with a best.json; leave it out, or name that file.")
    where, *others = _places(device, devices, parts)
    budget = memory_bytes("--max-footprint", max_footprint, BUDGET)
    documents = api.load_documents(only or (), 1 + len(others))
    folder = folder or RESULTS / f"claims-{folder_name(where)}"
    check_begun(folder, "claims", exists=(folder / STORED).exists(), resume=resume)
    try:
        machine = api.measured_machine(where)
        with formats.ClaimsProgress(output.stderr(), machine.name, len(documents)) as progress:
            found = api.reproduce(
                documents,
                where,
                folder,
                others=others,
                budget_bytes=budget,
                resume=resume,
                machine=machine,
                observer=progress,
            )
        api.write_claims_page(found, folder / PAGE)
        show(found, folder, as_json=as_json)
    except KeyboardInterrupt:
        on = ("--device", where) if devices is None else ("--devices", devices)
        LOG.info(_how_to_go_on((*on, *(("--parts", str(parts)) if parts else ())), only or (), folder, max_footprint))
        raise typer.Exit(130) from None


def _check_alone(best: Path, **given: object) -> None:
    """Refuse options of published experiments beside a best.json. Raises InputError."""
    if name := next((name for name, value in given.items() if value), ""):
        raise InputError(
            f"--{name.replace('_', '-')} does not go with {best}, whose kernel runs on one device; leave it out."
        )


def show_speed(path: Path, device: str | None, geometry: Path | None, *, as_json: bool) -> None:
    """Measure the kernel of a best.json again and print the verdict. Raises ChangedSpeedError if it is another one."""
    best, found = read_best(path), api.remeasure(path, device, geometry=geometry)
    if as_json:
        output.emit_json("reproduce-speed", remeasured.facts(best, found))
    else:
        remeasured.print_remeasured(best, found)
    for doubt in best.expected.doubts:
        LOG.warning("the recorded speed is not reliable: %s", doubt)
    if found.verdict is Verdict.UNKNOWN:
        LOG.warning("the spread between runs was not measured, here or there; lbmtune devices --calibrate measures it.")
    if found.verdict in (Verdict.SLOWER, Verdict.FASTER):
        why = found.causes[0] if found.causes else "device, software, clocks and load are as recorded"
        raise ChangedSpeedError(
            f"the speed of {path} does not hold here, {found.ratio} against the record: {why}; "
            "measure again, or run the study again."
        )


def _places(device: str | None, devices: str | None, parts: int | None) -> tuple[str, ...]:
    """Return the device of each part. Raises InputError."""
    if devices is not None and (device is not None or parts is not None):
        other = "--parts" if parts is not None else "--device"
        raise InputError(f"--devices {devices} does not go with {other}; leave one of them out.")
    return several(devices) if devices is not None else (chosen(device),) * (parts or 1)


def _how_to_go_on(on: Sequence[str], only: Sequence[str], folder: Path, budget: str) -> str:
    if not (folder / STORED).exists():
        return "stopped before the first group; nothing was kept. Begin again with the same command."
    again = ["lbmtune", "reproduce", *on, "--output", str(folder), "--max-footprint", budget, "--resume"]
    again += [part for name in only for part in ("--only", name)]
    return f"stopped; every finished group is in {folder}. Go on with: {shlex.join(again)}"


def _remarks(found: Claims) -> Iterator[dict[str, str]]:
    """Yield the remarks on variants, with the place of each."""
    for document in found.documents:
        for one in figures(found, document):
            if one.remark:
                place = {"document": document.name, "series": one.series, "domain": one.domain, "variant": one.title}
                yield {**place, "remark": one.remark}


def show(found: Claims, folder: Path, *, as_json: bool) -> None:
    """Print the tables of each document and the counts of all. Raises NothingValidError if nothing was measured."""
    if as_json:
        output.emit_json("reproduce", {**to_builtins(found), "remarks": list(_remarks(found))})
    else:
        for document in found.documents:
            output.stdout().print(formats.variant_table(found, document), "")
            for text in domain_texts(found, document):
                output.stdout().print(text, markup=False)
            for own in (False, True):
                if (verdicts := formats.verdict_table(found, document, own=own)).row_count:
                    output.stdout().print(verdicts, "")
        for counts in filter(None, (of_claims(found), of_questions(found))):
            output.stdout().print(counts, "", markup=False)
        output.stdout().print(f"claims  {folder / STORED}", markup=False)
        output.stdout().print(f"page    {folder / PAGE}", markup=False)
    if not any(row.trial and not row.why_not for group in found.groups for row in group.rows):
        raise NothingValidError(f"no configuration was measured; {folder / STORED} says why.")
