"""Verbs of the model: predict a configuration, rank a study, vary a knob."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lbmtune import api
from lbmtune.api.configs import config_text
from lbmtune.api.machines.devices import chosen, place
from lbmtune.backend.registry import backend_of
from lbmtune.cli import completion
from lbmtune.cli.arguments.configs import (
    Subject,
    check_backend,
    check_key,
    is_config,
    named,
    other_machine,
    resolve,
    searched,
    study_spec,
)
from lbmtune.cli.arguments.options import CutText, Json, OnMachine, Options, count, option, written
from lbmtune.cli.arguments.places import check_page
from lbmtune.cli.format import output
from lbmtune.cli.format.description import (
    arithmetic_text,
    doubted,
    fluid_rows,
    prediction_rows,
    print_cached,
    print_remarks,
    print_terms,
    unreliable,
)
from lbmtune.cli.format.output_costs import output_facts, output_rows
from lbmtune.cli.format.predictions import print_ranking, print_variation, single_value
from lbmtune.cli.format.several_devices.scaling import print_scaling, speeds_by_kind
from lbmtune.errors import InputError
from lbmtune.files.ranges import COMPILABLE, PARTS, PRINTED
from lbmtune.files.studyfile import check_acts
from lbmtune.model.machine.description import Machine as Description
from lbmtune.records.idle_threads import idle_threads

LOG = logging.getLogger("lbmtune")
_TOP, _COMPILED = 10, 200
"""Defaults of --top and --compile."""

ConfigOrStudy = Annotated[
    str,
    typer.Argument(
        metavar="CONFIG|STUDY",
        help="best.json, key or knobs such as scheme=aa,block=256x1x1; or a study, whose whole space is ranked",
        autocompletion=completion.configs_or_studies,
    ),
]
RankedStudy = Annotated[
    str,
    typer.Argument(
        metavar="STUDY", help="study file, shipped study or study folder", autocompletion=completion.studies
    ),
]
Top = Annotated[int | None, count("--top", "N", "rows of the ranking to print (default: 10)", PRINTED, 20)]
Compiled = Annotated[
    int,
    count(
        "--compile",
        "N",
        "compile the first N configurations of a ranking for the device, if NVRTC is installed; 0: none",
        COMPILABLE,
        50,
    ),
]
KnobName = Annotated[
    str,
    typer.Argument(
        metavar="KNOB", help="knob whose values are compared (see lbmtune list)", autocompletion=completion.knobs
    ),
]
Page = Annotated[Path | None, written("FILE", "also write an HTML page of the values of a knob, or of scaling")]
DeviceCount = Annotated[int | None, count("--devices", "N", "weak and strong scaling on up to N devices", PARTS, 8)]
OverlapName = Annotated[
    str, option("--overlap", "NAME", "with --devices: none, edge-first or edge-priority (default: fastest)")
]


def predict(
    options: OnMachine,
    subject: ConfigOrStudy = "quick",
    top: Top = None,
    compiled: Compiled = _COMPILED,
    vary_knob: Annotated[
        str, option("--vary", "KNOB", "as lbmtune vary, around CONFIG or the first of STUDY's ranking")
    ] = "",
    page: Page = None,
    device_count: DeviceCount = None,
    cut: CutText = "",
    overlap: OverlapName = "",
    weak: Annotated[bool, typer.Option("--weak", help="with --devices: weak scaling alone")] = False,
    strong: Annotated[bool, typer.Option("--strong", help="with --devices: strong scaling alone")] = False,
    as_json: Json = False,
) -> None:
    """Predict the speed of a configuration, here or on another device.

    With a study and no configuration, as lbmtune rank. With --devices, weak and strong scaling; of a study, that of the
    first kernel of its ranking that runs on parts.

    Examples:
        lbmtune predict scheme=aa,storage=fp32 --machine h200
        lbmtune predict box --machine h100 --top 20
        lbmtune predict best.json --machine h100 --devices 8
    """
    check_key(subject)
    if device_count is not None:
        if top or vary_knob:
            raise InputError(f"--devices {device_count} goes with one configuration; leave --top and --vary out.")
        kind = "" if weak == strong else "weak" if weak else "strong"
        _scaling(options, subject, compiled, (device_count, cut, overlap, kind), page, as_json)
        return
    if weak or strong:
        raise InputError(f"--{'weak' if weak else 'strong'} goes with --devices; add that.")
    if cut or overlap:
        raise InputError(f"{'--cut' if cut else '--overlap'} {cut or overlap} goes with --devices; add that.")
    if top and (vary_knob or is_config(subject)):
        instead = "--vary" if vary_knob else f"the configuration {subject}"
        raise InputError(f"--top {top} goes with a ranking of a study's space, not with {instead}; leave it out.")
    if page and not vary_knob:
        raise InputError(f"--output {page} goes with --vary or --devices; add one of them, or leave --output out.")
    if vary_knob:
        vary(vary_knob, options, subject, compiled, page, as_json)
    elif is_config(subject):
        _predict(resolve(subject, options).legal(), as_json)
    else:
        rank(options, subject, top, compiled, as_json)


def _predict(subject: Subject, as_json: bool) -> None:
    machine = subject.bounds.machine or api.measured_machine(subject.device)
    compiled = subject.compiled(machine)
    prediction = api.predictor(subject.case, machine)(subject.config, resources=compiled)
    print_remarks(machine, subject)
    print_cached([prediction], machine, subject.case)
    costs = api.costs(subject.case, subject.config)
    if as_json:
        counts = {name: costs[name] for name in ("flops_per_update", "flops_per_byte", "fluid_cells")}
        costs_of = output_facts(subject.case, subject.config, machine, subject.output)
        said = {"unreliable": unreliable(machine), "remark": idle_threads(subject.case, subject.config)}
        predicted = {"prediction": prediction, **costs_of, **said}
        output.emit_json("predict", {**named(subject), "machine": machine.name, **counts, **predicted})
        return
    output.print_pairs(
        [
            ("case", api.case_summary(subject.case)),
            *fluid_rows(subject.case, costs),
            ("machine", machine.name),
            ("least bytes per update", f"{prediction.bytes_per_update:g}"),
            ("flop per update", arithmetic_text(costs)),
            *prediction_rows(prediction, subject, compiled, unreliable(machine)),
            *output_rows(subject.case, subject.config, machine, subject.output),
        ]
    )
    print_terms(prediction)


def _scaling(
    options: Options, subject: str, compiled: int, asked: tuple[int, str, str, str], page: Path | None, as_json: bool
) -> None:
    """Print weak and strong scaling. asked: devices, cut, overlap and kind."""
    if page:
        check_page(page)
    count, cut, overlap, kind = asked
    if is_config(subject):
        found = resolve(subject, options)
        on = _machine(found.bounds.machine, found.device)
        case, config, resources, alone = found.case, found.config, found.compiled(on), found.measured(on)
    else:
        spec, where, machine = searched(replace(options, study=subject))
        on, case = _machine(machine, where), spec.case
        api.check_links(on, count)  # before a space is ranked
        config, resources, alone = api.first_on_parts(spec, on, compiled), None, None
    made = api.scaling(
        case, config, on, count, cut=cut, overlap=overlap, kind=kind, resources=resources, alone_mlups=alone
    )
    if page:
        title = doubted(f"scaling of {config_text(config)} on {made.machine}\n{api.case_summary(case)}", on)
        api.write_scaling(page, title, speeds_by_kind(made), made.alone, case.speed_unit)
        LOG.info("page  %s", page)
    if as_json:
        output.emit_json("scaling", {**made.facts(), "unreliable": unreliable(on)})
    else:
        print_scaling(made, api.case_summary(case), unreliable(on))


def rank(
    options: Annotated[Options, "sets", "device", "machine", "geometry"],
    study: RankedStudy = "quick",
    top: Top = None,
    compiled: Compiled = _COMPILED,
    as_json: Json = False,
) -> None:
    """Rank all legal configurations of a study by the model.

    Examples:
        lbmtune rank box --machine h200
        lbmtune rank box --set case.domain=300x200x100 --device cpu
    """
    check_key(study)
    spec, where, machine = searched(replace(options, study=study))
    on = _machine(machine, where)
    ranked = api.rank(spec, on, top or _TOP, compiled)
    print_cached([one.first.prediction for one in (*ranked.rows, *ranked.families)], on, spec.case)
    if as_json:
        output.emit_json("rank", {**ranked.facts(), "unreliable": unreliable(on)})
    else:
        print_ranking(ranked, doubted(api.case_summary(spec.case), on))
        if spec.output:
            output.print_pairs(output_rows(spec.case, ranked.rows[0].first.config, on, spec.output))


def vary(
    knob: KnobName,
    options: OnMachine,
    subject: ConfigOrStudy = "quick",
    compiled: Compiled = _COMPILED,
    page: Page = None,
    as_json: Json = False,
) -> None:
    """Predict the speed for each value that a study gives to a knob.

    All else is as in CONFIG, or as in the first of STUDY's ranking.

    Examples:
        lbmtune vary block --machine h200
        lbmtune vary threads scheme=aa --device cpu
    """
    check_key(subject)
    if page:
        check_page(page)
    around, machine = None, other_machine(options)
    if is_config(subject):  # beside a file, a study gives the values of the knob and no case
        around = resolve(subject, replace(options, study=None) if subject.endswith(".json") else options).legal()
        machine = around.bounds.machine
    where = around.device if around else chosen(options.device, machine=machine)
    check_backend((knob,), where, machine)
    api.check_knob(knob, backend_of(where))  # before the device is measured
    spec = study_spec(options if around else replace(options, study=subject))
    check_acts(options.sets or (), backend_of(where), place(where, machine))
    if around:
        spec = replace(spec, case=around.case)
    on = _machine(machine, where)
    found = api.vary(spec, on, knob, around.config if around else None, compiled)
    print_cached(list(found.predictions.values()), on, spec.case)
    has_record = around is not None and not ("=" in subject or around.ranked)
    if remark := single_value(found, has_record=has_record):
        LOG.info(remark)
    title = doubted(f"{knob} around {config_text(found.around)} on {found.machine}\n{api.case_summary(found.case)}", on)
    if page:
        api.write_varied(page, title, knob, {str(value): one for value, one in found.predictions.items()})
        LOG.info("page  %s", page)
    if as_json:
        output.emit_json("vary", {**found.facts, "unreliable": unreliable(on)})
    else:
        print_variation(found, title)


def _machine(machine: Description | None, device: str) -> Description:
    """Return the machine, or else the description of a device, with a remark on how far predictions hold."""
    found = machine or api.measured_machine(device)
    print_remarks(found)
    return found
