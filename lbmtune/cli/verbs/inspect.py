"""Verbs that only tell: devices, explain, render, predict."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lbmtune.cli.arguments.numbers import whole
from lbmtune.cli.arguments.options import RESULTS, Config, Device, Json, Machine, Out, Sets, Study
from lbmtune.cli.files.ranges import COMPILABLE, PRINTED
from lbmtune.cli.format.description import arithmetic, arithmetic_text, machine_rows, prediction_rows, said
from lbmtune.errors import InputError

if TYPE_CHECKING:
    from lbmtune.catalogue.config import KernelConfig
    from lbmtune.catalogue.problem.case import Case
    from lbmtune.cli.arguments.configs import Subject
    from lbmtune.cli.vary import Varied
    from lbmtune.model.machine.description import Machine as Described
    from lbmtune.records import Prediction, Resources


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
) -> None:
    """Devices that can be tuned here, with measured bandwidths, and the files of their descriptions."""
    from msgspec import to_builtins

    from lbmtune.backend.registry import available
    from lbmtune.cli.arguments.devices import kept_in, machine
    from lbmtune.cli.format import output

    names = available() if device is None else (device,)
    found = {name: machine(name, refresh=refresh, calibration=calibrate) for name in names}
    files = {name: kept_in(described) for name, described in found.items()}
    if as_json:
        output.emit_json({name: {**to_builtins(one), "file": _path(files[name])} for name, one in found.items()})
        return
    for name, described in found.items():
        output.print_pairs([*machine_rows(name, described), ("for --machine", _path(files[name]) or "not kept")])
        output.stdout().print()


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)


def explain(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    machine: Machine = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """Why a configuration is legal or not, and what it costs."""
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.arguments.configs import resolve
    from lbmtune.cli.arguments.machines import elsewhere
    from lbmtune.cli.format import output

    subject = resolve(config, study, sets, device, out, elsewhere(machine, device))
    reason, bounds = subject.reason, subject.bounds
    described = bounds.machine or (here.machine(subject.device) if bounds.known and not reason else None)
    prediction, compiled = None, subject.compiled(described) if described else None
    if described and not reason:
        _warn(described)
        if remark := subject.elsewhere(described):
            output.note(remark)
        prediction = here.predictor(subject.case, described)(subject.config, resources=compiled)
    facts = {
        "case": subject.case,
        "config": subject.config.flat(),
        "key": subject.config.key,
        "legal": reason is None,
        "reason": reason or "",
        "limits_of_device": bounds.known,
        "machine": bounds.machine.name if bounds.machine else None,
        **(_costs(subject.case, subject.config) if reason is None else dict.fromkeys(COSTS)),
        "measured": subject.before and {"mlups": subject.before.mlups, "device": subject.before.made_on.device},
        "prediction": prediction,
    }
    if as_json:
        output.emit_json(facts)
    else:
        output.print_pairs(_explained(subject, facts, compiled))


COSTS = ("bytes_per_update", "flops_per_update", "flops_per_byte", "footprint_bytes")
"""Facts that only a legal configuration has: the others have no kernel that could move a byte."""


def _costs(case: Case, config: KernelConfig) -> dict[str, float]:
    """In the order of COSTS."""
    from lbmtune.catalogue.footprint import bytes_per_update, footprint_bytes

    moved = bytes_per_update(case, config)
    found = {"bytes_per_update": moved, **arithmetic(case, moved), "footprint_bytes": footprint_bytes(case, config)}
    return {name: found[name] for name in COSTS}


def _explained(subject: Subject, facts: dict[str, Any], compiled: Resources | None) -> list[tuple[str, object]]:
    from lbmtune.report.titles import subject as solved
    from lbmtune.units import format_bytes, format_mlups

    limits, before = subject.bounds.whose, subject.before
    rows: list[tuple[str, object]] = [
        ("case", solved(subject.case, [])),
        ("configuration", said(subject.config)),
        ("key", facts["key"]),
        ("legal", f"yes{limits}" if facts["legal"] else f"no{limits}: {facts['reason']}"),
    ]
    if facts["legal"]:
        rows += [
            ("bytes per update", f"{facts['bytes_per_update']:g}"),
            ("flop per update", arithmetic_text(facts)),
            ("footprint", format_bytes(facts["footprint_bytes"])),
        ]
    if before and before.mlups:
        rows.append(("measured", f"{format_mlups(before.mlups)} MLUPS on {before.made_on.device}, as recorded"))
    if facts["prediction"]:
        rows += prediction_rows(facts["prediction"], subject, compiled)
    return rows


def render(
    config: Config,
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    machine: Machine = None,
    out: Out = RESULTS,
    as_json: Json = False,
) -> None:
    """The source text of a kernel."""
    from lbmtune.cli.arguments.configs import resolve
    from lbmtune.cli.arguments.machines import elsewhere
    from lbmtune.cli.format import output
    from lbmtune.codegen.render import render as rendered

    subject = resolve(config, study, sets, device, out, elsewhere(machine, device)).legal()
    program = rendered(subject.case, subject.config)
    if as_json:
        output.emit_json(
            {
                "config": subject.config.flat(),
                "target": program.target,
                "options": program.options,
                "entries": program.entries,
                "digest": program.digest,
                "source": program.source,
            }
        )
    else:
        sys.stdout.write(program.source)


_TOP, _COMPILED = 10, 200
"""Of a ranking, unless somebody says otherwise: how many are printed, and compiled."""


def predict(
    subject: Annotated[
        str,
        typer.Argument(metavar="CONFIG|STUDY", help="as with explain, or a study, whose whole space is ranked"),
    ] = "quick",
    study: Study = None,
    sets: Sets = None,
    device: Device = None,
    machine: Machine = None,
    out: Out = RESULTS,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            help="how many rows of the fastest of a study to print (default: 10)",
            parser=whole("--top", PRINTED, 20),
        ),
    ] = None,
    compiled: Annotated[
        int,
        typer.Option(
            "--compile",
            metavar="N",
            help="how many of the first a ranking compiles for the device, if NVRTC is here",
            parser=whole("--compile", COMPILABLE, 50),
        ),
    ] = _COMPILED,
    vary: Annotated[
        str,
        typer.Option(
            "--vary",
            metavar="AXIS",
            help="compare the values of an axis, around CONFIG or around the first of STUDY's ranking",
        ),
    ] = "",
    page: Annotated[Path | None, typer.Option("--page", metavar="FILE", help="with --vary: also an HTML page")] = None,
    as_json: Json = False,
) -> None:
    """The speed that the model expects, here or on another device.

    Where a study is named and no configuration, its whole legal space is ranked.
    """
    from lbmtune.backend.registry import backend_of
    from lbmtune.cli.arguments import devices as here
    from lbmtune.cli.arguments.configs import check_backend, is_config, resolve, study_spec
    from lbmtune.cli.arguments.machines import elsewhere
    from lbmtune.cli.files.studyfile import check_acts
    from lbmtune.cli.format import output
    from lbmtune.report.titles import subject as solved

    _check_asked(subject, top, vary, page)
    there = elsewhere(machine, device)
    if not (vary or is_config(subject)):
        from lbmtune.cli.format.ranking_table import print_ranking
        from lbmtune.cli.ranking import ranking  # here: it loads the model

        where = here.chosen(device, machine=there)
        spec = study_spec(subject, sets)
        check_acts(sets or (), backend_of(where), here.place(where, there))
        described = there or here.machine(where)
        _warn(described)
        ranked = ranking(spec, described, top or _TOP, compiled, output.note)
        _say_cached([one.first.prediction for one in (*ranked.rows, *ranked.families)], described, spec.case)
        if as_json:
            output.emit_json(ranked.facts())
        else:
            print_ranking(ranked)
        return
    gives_values = vary and subject.endswith(".json")  # beside a file a study gives no case, but the values of the axis
    gives_case = None if gives_values else study
    meant = resolve(subject, gives_case, sets, device, out, there) if is_config(subject) else None
    known = meant.bounds.machine if meant else there
    if vary or meant is None:
        from lbmtune.cli.vary import alone, around, around_best, check_axis

        given = meant.legal() if meant else None
        where = given.device if given else here.chosen(device, machine=there)
        check_backend((vary,), where, known)
        check_axis(vary, backend_of(where))  # first: to describe a device may take half a minute
        spec = study_spec(study if given else subject, sets)
        check_acts(sets or (), backend_of(where), here.place(where, known))
        described = known or here.machine(where)
        _warn(described)
        if given:
            spec = replace(spec, case=given.case)
            found = around(spec, described, vary, given.config)
        else:
            found = around_best(spec, described, vary, compiled)
        _say_cached(list(found.predictions.values()), described, spec.case)
        if remark := alone(found, settled=meant is not None and not ("=" in subject or meant.ranked)):
            output.note(remark)
        _vary(found, page, as_json)
        return
    described = known or here.machine(meant.device)
    used = meant.compiled(described)
    prediction = here.predictor(meant.case, described)(meant.legal().config, resources=used)
    _warn(described)
    if remark := meant.elsewhere(described):
        output.note(remark)
    _say_cached([prediction], described, meant.case)
    counted = arithmetic(meant.case, prediction.bytes_per_update)
    if as_json:
        named = {"case": meant.case, "config": meant.config.flat(), "key": meant.config.key}
        output.emit_json({**named, "machine": described.name, **counted, "prediction": prediction})
    else:
        moved = [
            ("case", solved(meant.case, [])),
            ("machine", described.name),
            ("bytes per update", f"{prediction.bytes_per_update:g}"),
            ("flop per update", arithmetic_text(counted)),
        ]
        output.print_pairs([*moved, *prediction_rows(prediction, meant, used)])


def _warn(described: Described) -> None:
    from lbmtune.cli.arguments.devices import doubt
    from lbmtune.cli.format.output import note

    if remark := doubt(described):
        note(remark)


def _say_cached(predictions: Sequence[Prediction], described: Described, case: Case) -> None:
    """Says where the last cache of a processor holds the smallest of what predictions are of."""
    from lbmtune.cli.format.output import note
    from lbmtune.records.in_cache import in_cache, last_cache

    cache_bytes = last_cache(described.environment.backend, described.caches_bytes)
    smallest = min((one.footprint_bytes for one in predictions), default=0)
    if remark := in_cache(smallest, cache_bytes, case.domain):
        note(remark)


def _check_asked(subject: str, top: int | None, vary: str, page: Path | None) -> None:
    """Refuses what would not be heard. Raises InputError."""
    from lbmtune.cli.arguments.configs import check_digits, is_config

    check_digits(subject)
    if top and (vary or is_config(subject)):
        instead = "--vary" if vary else f"the configuration {subject}"
        raise InputError(f"--top {top} goes with a ranking of a study's space, not with {instead}; leave it out.")
    if page and not vary:
        raise InputError(f"--page {page} goes with --vary alone; add that, or leave --page out.")
    if page:
        _check_page(page)


def _check_page(page: Path) -> None:
    """Refuses early what could not be written once all is estimated. Raises InputError."""
    from lbmtune.records.store import check_writable

    if page.suffix != ".html":
        raise InputError(f"--page {page} is not a page; name a file that ends in .html.")
    if page.is_dir():
        raise InputError(f"cannot write {page}: Is a directory; choose another file for --page.")
    check_writable(page.parent)


def _vary(found: Varied, page: Path | None, as_json: bool) -> None:
    from lbmtune.cli.format import output
    from lbmtune.cli.vary import print_varied
    from lbmtune.report.varied import write_varied

    if page:
        write_varied(page, found.title, found.axis, {str(value): one for value, one in found.predictions.items()})
        output.note(f"page  {page}")
    if as_json:
        output.emit_json(found.facts)
    else:
        print_varied(found)
