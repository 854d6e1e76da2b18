"""The verb `plan`: what fits in a memory."""

from typing import Annotated

import typer

from lbmtune import api
from lbmtune.cli.arguments.configs import other_machine, study_spec
from lbmtune.cli.arguments.numbers import memory_bytes
from lbmtune.cli.arguments.options import Json, Options, count, option
from lbmtune.cli.format import output
from lbmtune.cli.format.description import print_remarks
from lbmtune.cli.format.planning import print_plan
from lbmtune.files.ranges import DEVICES

PlannedStudy = Annotated[
    str, typer.Argument(metavar="CASE", help="study file, shipped study or study folder that gives the case")
]
Memory = Annotated[
    str | None, option("--memory", "SIZE", "memory of a device, such as 80GiB (default: that of the device)")
]
Devices = Annotated[int, count("--devices", "N", "devices that share a domain", DEVICES, 4)]


def plan(
    options: Annotated[Options, "sets", "device", "machine", "geometry"],
    case: PlannedStudy = "quick",
    memory: Memory = None,
    devices: Devices = 1,
    as_json: Json = False,
) -> None:
    """Show the largest domain of each kind of kernel in a memory, and the devices that the case needs.

    Knobs other than family, scheme and storage have their defaults. With --machine, speeds are predicted.

    Examples:
        lbmtune plan box --memory 80GiB
        lbmtune plan cavity --machine h200 --devices 4
    """
    machine = other_machine(options)
    size = None if memory is None else memory_bytes("--memory", memory, "80GiB")
    spec = study_spec(Options(study=case, sets=options.sets, geometry=options.geometry))
    found = api.plan(spec, size, devices, machine=machine, device=options.device)
    if machine:
        print_remarks(machine)
    if as_json:
        output.emit_json("plan", found.facts())
    else:
        print_plan(found, api.case_summary(spec.case))
