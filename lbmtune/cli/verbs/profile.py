"""The verb profile: where the speed of a kernel goes, from the data sheet to what is measured."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbmtune.cli.arguments.options import RESULTS, Config, Device, Json, Sets, Study
from lbmtune.errors import InputError

if TYPE_CHECKING:
    from lbmtune.cli.arguments.configs import Subject
    from lbmtune.records.profile import Profile


def profile(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="NAME|FILE", help="what the model knows of the device (default: its own)"),
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="also read counters of the hardware: Nsight Compute, perf")
    ] = True,
    sources: Annotated[
        Path | None, typer.Option("--sources", metavar="FOLDER", help="leave the kernel's text and a request there")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="write a page there, and the record beside it")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measures a ladder from data sheet to kernel, beside the model."""
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.arguments.configs import resolve, study_spec
    from lbmtune.cli.arguments.machines import named_machine
    from lbmtune.cli.format import output
    from lbmtune.measure.profiling.loss_breakdown import ProfileRequest
    from lbmtune.measure.profiling.profile import profile as profiled
    from lbmtune.records.store import check_writable
    from lbmtune.search.lock import device_lock

    if out and out.suffix != ".html":
        raise InputError(f"--out {out} is not a page; name a file that ends in .html, the record goes beside it.")
    for place in filter(None, (out and out.parent, sources)):
        check_writable(place)
    subject = resolve(config, study, sets, device, RESULTS).legal()
    known = here.machine(subject.device, calibration=True) if machine is None else named_machine(machine)
    if known.environment.backend != subject.config.backend:
        kind = subject.config.backend
        raise InputError(f"--machine {machine} is no {kind} device and the configuration is for one; leave it out.")
    request = ProfileRequest(subject.case, subject.config, known, study_spec(study, sets).protocol, counters)
    folder = str(sources.resolve()) if sources else ""
    found = profiled(subject.device, request, output.note, alone=device_lock, sources=folder)
    if as_json:
        output.emit_json(found)
    else:
        _show(found)
    if out:
        _write(found, out)
    if sources:
        _leave_sources(subject, sources)


def _leave_sources(subject: Subject, folder: Path) -> None:
    """The text of the kernel, and what a profiler of the user's own is to be started over."""
    from lbmtune.cli.format.output import note
    from lbmtune.codegen.render import render
    from lbmtune.measure.profiling.profiler_target import text_on_disk, write_request

    text = text_on_disk(render(subject.case, subject.config), folder)
    request = text.with_suffix(".json")
    write_request(request, subject.case, subject.config, subject.device, str(folder.resolve()))
    over = f"{sys.executable} -m lbmtune.measure.profiling.profiler_target {request}"
    command = f"ncu --profile-from-start off --set full --import-source yes -o report {over}"
    note(f"source   {text}\nprofile it with: {command}")


def _show(found: Profile) -> None:
    from lbmtune.catalogue.config import from_flat
    from lbmtune.cli.format import output
    from lbmtune.records.disturbance import profile_disturbance
    from lbmtune.report import profile_tables as shown

    console = output.stdout()
    if remark := profile_disturbance(found):
        console.print(f"disturbed: {remark}", "", markup=False)
    console.print(f"{from_flat(found.config).said} on {found.environment.device}", "", markup=False)
    console.print(output.table("from the ceiling to the kernel", shown.COLUMNS, shown.level_rows(found)), "")
    console.print(output.table("terms of the model", shown.TERM_COLUMNS, shown.term_rows(found)), "")
    if found.apart:
        console.print(output.table("parts of the kernel alone", shown.PART_COLUMNS, shown.part_rows(found)), "")
    if found.counters.found:
        console.print(output.table(found.counters.source, shown.COUNTER_COLUMNS, shown.counter_rows(found)), "")
    else:
        console.print(found.counters.source, "", markup=False)
    if rows := shown.state_rows(found):
        output.print_pairs(rows)
    console.print(f"\n{shown.conclusion(found)}", markup=False)


def _write(found: Profile, page: Path) -> None:
    import msgspec

    from lbmtune.cli.format.output import note
    from lbmtune.records.store import write_atomically
    from lbmtune.report.profile import write_profile_page

    record = page.with_suffix(".json")
    write_atomically(record, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    write_profile_page(found, page)
    note(f"profile  {record}\npage     {page}")
