"""The verb profile: where the speed of a kernel goes, from the data sheet to what is measured."""

import logging
from pathlib import Path
from typing import Annotated

import typer

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.machines.shipped import named_machine
from lbmtune.cli.arguments.configs import resolve, study_spec
from lbmtune.cli.arguments.options import Config, Json, Options, option, written
from lbmtune.cli.arguments.places import check_folder, check_page
from lbmtune.cli.format import output
from lbmtune.errors import InputError
from lbmtune.records.profile import Profile
from lbmtune.records.store import write_record

LOG = logging.getLogger("lbmtune")


def profile(
    config: Config,
    options: Annotated[Options, "study", "sets", "device", "geometry"],
    machine: Annotated[
        str | None, option("--machine", "NAME|FILE", "description for the model (default: of the device)")
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="also read hardware counters: Nsight Compute, perf")
    ] = True,
    sources: Annotated[
        Path | None,
        option("--sources", "FOLDER", "write the kernel's source to this folder, and print how to profile it"),
    ] = None,
    page: Annotated[Path | None, written("FILE", "HTML page to write; the record goes beside it")] = None,
    as_json: Json = False,
) -> None:
    """Split the lost speed of a kernel by cause.

    Examples:
        lbmtune profile best.json
        lbmtune profile scheme=aa --device cpu --no-counters --output profile.html
    """
    if page:
        check_page(page)
    if sources:
        check_folder(sources)
    subject = resolve(config, options).legal()
    if subject.recorded and subject.recorded.parts:
        LOG.warning(
            f"{config} is of {subject.recorded.parts} parts, and a profile is of its kernel on one device; "
            f"lbmtune measure {config} --devices 0,1 times launches and exchange of parts."
        )
    machine_of_model = named_machine(machine) if machine else None
    if machine_of_model and machine_of_model.environment.backend != subject.config.backend:
        kind = subject.config.backend
        raise InputError(f"--machine {machine} is no {kind} device and the configuration is for one; leave it out.")
    found = api.profile(
        subject.case,
        subject.config,
        subject.device,
        machine=machine_of_model,
        protocol=study_spec(options).protocol,
        counters=counters,
        sources=sources,
    )
    if as_json:
        output.emit_json("profile", found)
    else:
        formats.print_profile(found)
    if page:
        _write(found, page)
    if sources:
        target = api.profiler_target(subject.case, subject.config, subject.device, sources)
        LOG.info("source   %s\nprofile it with: %s", *target)


def _write(found: Profile, page: Path) -> None:
    record = page.with_suffix(".json")
    write_record(record, found)
    api.write_profile_page(found, page)
    LOG.info("profile  %s\npage     %s", record, page)
