"""Verbs that inspect: devices, explain, render."""

import logging
from dataclasses import replace
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from lbmtune import api
from lbmtune.backend import registry
from lbmtune.cli import completion
from lbmtune.cli.arguments.configs import Subject, check_key, is_config, named, resolve, study_spec
from lbmtune.cli.arguments.options import Config, CutText, Json, OnMachine, Options, Parts
from lbmtune.cli.format import output
from lbmtune.cli.format.description import (
    arithmetic_text,
    config_text,
    fluid_rows,
    machine_rows,
    prediction_rows,
    print_links,
    print_remarks,
    print_terms,
    unreliable,
)
from lbmtune.cli.format.several_devices.decomposition import print_parts
from lbmtune.model.machine.description import Extent, Machine
from lbmtune.records import Prediction, Resources
from lbmtune.records.idle_threads import idle_threads
from lbmtune.units import format_bytes, format_mlups

LOG = logging.getLogger("lbmtune")
_USUAL, _USUAL_SPARSE = "backend=cuda", "backend=cuda,family=sparse"
"""The kernels whose parts are shown of a study, the second one if it has solid cells."""
ConfigOrCase = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG",
        help="best.json, the key of a trial or (with --study) of a ranking, or scheme=aa,block=256x1x1,...; with "
        "--parts or --cut also a study",
        autocompletion=completion.configs_or_studies,
    ),
]
COSTS = ("bytes_per_update", "flops_per_update", "flops_per_byte", "footprint_bytes", "fluid_cells")
"""Facts that only a legal configuration has."""


def devices(
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", metavar="DEVICE", help="this one alone: cpu, or the index of a GPU"),
    ] = None,
    as_json: Json = False,
    refresh: Annotated[bool, typer.Option("--refresh", help="measure again, even if nothing has changed")] = False,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="measure also what the model needs besides bandwidths; about a minute")
    ] = False,
    links: Annotated[
        bool, typer.Option("--links", help="measure the links of several GPUs; seconds, and part of --calibrate")
    ] = False,
) -> None:
    """List devices that can be tuned here, with measured bandwidths, and the files of their descriptions.

    Of several GPUs also their links, with measured bandwidths and latencies.

    Examples:
        lbmtune devices
        lbmtune devices --device 0 --calibrate
    """
    names = registry.available() if device is None else (device,)
    extent: Extent = "full" if calibrate else "bandwidths"
    # the links alone need no new bandwidths
    again = refresh and (calibrate or not links)
    found = {name: api.measured_machine(name, refresh=again, extent=extent) for name in names}
    if links and not api.linked(found):
        LOG.warning("--links measures nothing: links are those between GPUs, and fewer than two are listed.")
    if calibrate or links:
        found = api.measured_links(found, refresh=refresh)
    paths = {name: api.machine_file(machine) for name, machine in found.items()}
    files = {name: str(path) if path else None for name, path in paths.items()}
    if as_json:
        listed = [{"device": name, "file": files[name], **to_builtins(one)} for name, one in found.items()]
        output.emit_json("devices", {"devices": listed})
        return
    for name, machine in found.items():
        output.print_pairs([*machine_rows(name, machine), ("for --machine", files[name] or "not kept")])
        output.stdout().print()
    print_links(api.linked(found))


def explain(
    config: ConfigOrCase, options: OnMachine, parts: Parts = None, cut: CutText = "", as_json: Json = False
) -> None:
    """Show if a configuration is legal, and what it costs; with --parts or --cut, its parts on several devices.

    With --parts or --cut, CONFIG may be a study, whose domain is cut for the kernel with default knobs.

    Examples:
        lbmtune explain scheme=aa,block=256x1x1 --machine h200
        lbmtune explain best.json
        lbmtune explain box --parts 8
    """
    if parts is not None or cut:
        _explain_parts(config, options, parts, cut, as_json)
        return
    subject = resolve(config, options)
    machine = subject.bounds.machine
    if machine is None and subject.reason is None and subject.bounds.known:
        machine = api.measured_machine(subject.device)
    prediction, compiled = _predicted(subject, machine)
    doubtful = unreliable(machine) if machine and prediction else ""
    facts = {**_facts(subject, machine, prediction), "unreliable": doubtful}
    if as_json:
        output.emit_json("explain", facts)
    else:
        output.print_pairs(_rows(subject, facts, compiled))
        if prediction:
            print_terms(prediction)


def _explain_parts(config: str, options: Options, parts: int | None, cut: str, as_json: bool) -> None:
    check_key(config)
    if not is_config(config):
        options = replace(options, study=config)
        config = _USUAL_SPARSE if study_spec(options).case.geometry else _USUAL
    subject = resolve(config, options)
    case, kernel, limits = subject.case, subject.config, subject.bounds.limits
    compared = () if cut else tuple(api.cuts(case, kernel, parts or 0, limits=limits))
    found = compared[0] if compared else api.decompose(case, kernel, cut, parts, limits=limits)
    if as_json:
        facts = {**named(subject), **found.facts()}
        output.emit_json("explain-parts", {**facts, "cuts": [one.summary() for one in compared]})
    else:
        print_parts(found, compared, api.case_summary(case), config_text(kernel))


def _predicted(subject: Subject, machine: Machine | None) -> tuple[Prediction | None, Resources | None]:
    """Return the prediction of a legal configuration on a known machine, and its compiled resources."""
    if subject.reason or machine is None:
        return None, None
    print_remarks(machine, subject)
    compiled = subject.compiled(machine)
    return api.predictor(subject.case, machine)(subject.config, resources=compiled), compiled


def _facts(subject: Subject, machine: Machine | None, prediction: Prediction | None) -> dict[str, Any]:
    recorded = subject.recorded
    legal = subject.reason is None
    return {
        **named(subject),
        "legal": legal,
        "reason": subject.reason or "",
        "limits_of_device": subject.bounds.known,
        "machine": machine.name if machine else None,
        **(api.costs(subject.case, subject.config) if legal else dict.fromkeys(COSTS)),
        "measured": recorded and {"mlups": recorded.mlups, "device": recorded.made_on.device},
        "prediction": prediction,
        "remark": idle_threads(subject.case, subject.config) if legal else "",
    }


def _rows(subject: Subject, facts: dict[str, Any], compiled: Resources | None) -> list[tuple[str, object]]:
    limits, recorded = subject.bounds.place, subject.recorded
    rows: list[tuple[str, object]] = [
        ("case", api.case_summary(subject.case)),
        ("configuration", config_text(subject.config)),
        ("key", facts["key"]),
        ("legal", f"yes{limits}" if facts["legal"] else f"no{limits}: {facts['reason']}"),
    ]
    if facts["legal"]:
        rows += [
            *fluid_rows(subject.case, facts),
            ("least bytes per update", f"{facts['bytes_per_update']:g}"),
            ("flop per update", arithmetic_text(facts)),
            ("footprint", format_bytes(facts["footprint_bytes"])),
        ]
    if recorded and recorded.mlups:
        rows.append(("measured", f"{format_mlups(recorded.mlups)} MLUPS on {recorded.made_on.device}, as recorded"))
    if facts["prediction"]:
        rows += prediction_rows(facts["prediction"], subject, compiled, facts["unreliable"])
    return rows


def render(config: Config, options: OnMachine, as_json: Json = False) -> None:
    """Print the source text of a kernel.

    Examples:
        lbmtune render scheme=aa,block=256x1x1 --machine h200
        lbmtune render scheme=aa --device cpu
    """
    subject = resolve(config, options).legal()
    program = api.render(subject.case, subject.config, subject.device, machine=subject.bounds.machine)
    if as_json:
        output.emit_json(
            "render",
            {
                **named(subject),
                "target": program.target,
                "options": program.options,
                "entries": program.entries,
                "source_digest": program.digest,
                "source": program.source,
            },
        )
    else:
        output.emit(program.source)
