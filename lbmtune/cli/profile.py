"""The verb profile: where the speed of a kernel goes, from the data sheet to what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbmtune.cli.options import RESULTS, Config, Device, Json, Sets, Study

if TYPE_CHECKING:
    from lbmtune.records.profile import Profile


def profile(
    config: Config,
    study: Study = "quick",
    sets: Sets = None,
    device: Device = None,
    machine: Annotated[
        Path | None, typer.Option("--machine", help="what the model knows of the device, as TOML (default: its own)")
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters/--no-counters", help="also read hardware counters, by Nsight Compute")
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="write a page there, and the record beside it as .json")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measures a ladder from the data sheet to the kernel, and holds the model against each rung."""
    from lbmtune.cli import devices as here
    from lbmtune.cli import output
    from lbmtune.cli.configs import resolve, study_spec
    from lbmtune.measure.ladder import Asked
    from lbmtune.measure.profiling import profile as profiled
    from lbmtune.model.toml import read_machine

    subject = resolve(config, study, sets, device, RESULTS).legal()
    known = read_machine(machine) if machine else here.machine(subject.device, calibration=True)
    asked = Asked(subject.case, subject.config, known, study_spec(study, sets).protocol)
    found = profiled(subject.device, asked, output.note, counters=counters)
    if as_json:
        output.emit_json(found)
    if out:
        out.with_suffix(".json").write_bytes(__import__("msgspec").json.encode(found))
