"""Verbs that read a finished study: report, export."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lbmtune import api
from lbmtune.api.studies.folders import RESULTS, portfolio_folder, study_folder
from lbmtune.claims.store import PAGE, claims_folder, read_claims
from lbmtune.cli.arguments.options import Geometry, Json, Studies, count, option, written
from lbmtune.cli.arguments.places import check_file, check_folder
from lbmtune.cli.format import output as printing
from lbmtune.errors import InputError, given_path, unknown
from lbmtune.files.ranges import MEMBERS, TRIAL_NUMBERS
from lbmtune.records.remarks import speed_doubts

LOG = logging.getLogger("lbmtune")
Page = Annotated[Path | None, written("FILE", "page to write (default: report.html in the study folder)")]
Target = Annotated[
    Path | None, written("FILE", "file to write, or folder of a bundle (default: inside the study folder)")
]
COMPARISON = "comparison.html"


def report(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="STUDIES", help="a study folder, or its name under --studies; several for one page of all"
        ),
    ],
    output: Page = None,
    studies: Studies = RESULTS,
    geometry: Geometry = None,
    as_json: Json = False,
) -> None:
    """Write the report of a study, of a portfolio, or of a run of reproduce, from its records.

    Of several studies one page is written, comparison.html under --studies: each beside the first, and which kernel
    serves all of them best.

    Examples:
        lbmtune report my-study
        lbmtune report my-study --output report.html
        lbmtune report h100-box h200-box
    """
    if output:
        check_file(output)
    study, *others = names
    if others:
        if geometry is not None:
            raise InputError(f"--geometry {geometry} goes with one study; leave it out.")
        folders = [study_folder(name, studies) for name in names]
        path = api.write_comparison_page(folders, output or studies / COMPARISON)
    elif folder := claims_folder(study, studies):
        path = output or folder / PAGE
        api.write_claims_page(read_claims(folder), path)
    elif several_sizes := portfolio_folder(study, studies):
        path = api.report_portfolio(several_sizes, output)
    else:
        path = api.Study(study_folder(study, studies), geometry=geometry).report(output)
    _print_path("report", path, as_json)


def export(
    study: Annotated[
        str, typer.Argument(metavar="STUDY", help="a study folder, its name under --studies, or a best.json")
    ],
    kind: Annotated[
        str,
        option(
            "--format",
            "NAME",
            "best (best.json), cuda (a C++ header), c (object code for C and Fortran), bundle (a folder), "
            "lbmpy (a program); of a kernel of your own best, defines or flags; "
            "or all trials: t4, csv",
        ),
    ] = "best",
    member: Annotated[
        int | None,
        count("--member", "N", "member N of the Pareto set of several objectives, in place of the winner", MEMBERS, 2),
    ] = None,
    trial: Annotated[
        int | None,
        count("--trial", "N", "the trial of this number, in place of the winner (format best)", TRIAL_NUMBERS, 53),
    ] = None,
    name: Annotated[
        str | None, option("--name", "NAME", "namespace of a header (default: made of the study and the kernel)")
    ] = None,
    target: Annotated[
        str | None, option("--target", "NAME", "processors of the object: host (default), x86-64-v3 or x86-64-v4")
    ] = None,
    output: Target = None,
    studies: Studies = RESULTS,
    geometry: Geometry = None,
    as_json: Json = False,
) -> None:
    """Write best.json of a study, which lbmtune.load reads, a header of its kernel, or all its trials.

    A best.json in place of the study is enough for cuda, c, bundle and lbmpy.

    Examples:
        lbmtune export my-study
        lbmtune export best.json --format cuda --output kernel.cuh
        lbmtune export my-study --trial 53
        lbmtune export my-study --format csv
    """
    _check_for_format(kind, member, trial, name, target)
    if several_sizes := portfolio_folder(study, studies):
        if trial is not None:
            raise InputError(f"--trial {trial} is not supported for a portfolio ({study}); leave it out.")
        path = api.export_portfolio(several_sizes, kind, output, name=name, target=target)
        _print_path(kind, path, as_json)
        return
    if output:
        (check_folder if kind == "bundle" else check_file)(output)
        if output.resolve() == Path(study).resolve():
            raise InputError(f"--output {output} is what is exported; choose another file.")
    if kind in _OF_A_FILE and (file := given_path(study)).is_file():
        _check_alone(file, {"--member": member, "--geometry": geometry})
        _print_written(kind, api.export_best(file, kind, output, name=name, target=target), as_json)
        return
    found = api.Study(study_folder(study, studies), geometry=geometry)
    if kind == "best":
        path = found.export(output, member=member, trial=trial)
    elif kind == "lbmpy":
        path = found.export_lbmpy(output, member=member)
    elif kind in ("defines", "flags"):
        path = found.export_values(kind, output, member=member)
    elif kind in _OF_A_KERNEL:
        path = _WRITERS[kind](found)(output, member=member, name=name, **({"target": target} if target else {}))
    else:
        path = found.export_trials(kind, output)
    if kind in _OF_A_KERNEL:
        for text in speed_doubts(found.record, found.chosen(member, trial)):
            LOG.warning(text)
    several = found.record.winner_on_parts if member is None else None
    if several and kind in ("cuda", "c"):
        LOG.warning(
            f"{path} runs on one device; best.json has the cut and the exchange of {len(several[0].devices)} parts, "
            "which lbmtune.load takes (devices=[0, 1])."
        )
    _print_written(kind, path, as_json)


def _check_for_format(kind: str, member: int | None, trial: int | None, name: str | None, target: str | None) -> None:
    """Raise InputError for a format that is not known, or an option that it does not take."""
    if kind not in _FORMATS:
        raise unknown("format", kind, _FORMATS)
    refused = (
        (member and kind not in _OF_A_KERNEL, f"--member {member}", "(leave it out): that holds all trials."),
        (trial is not None and kind != "best", f"--trial {trial}", "(use best): export the file that it writes."),
        (name and kind not in _WRITERS, f"--name {name}", "(use cuda): only a header has a namespace."),
        (target and kind not in ("c", "bundle"), f"--target {target}", "(use c): only object code has one."),
    )
    for bad, given, why in refused:
        if bad:
            raise InputError(f"{given} is not supported for format={kind} {why}")


def _check_alone(file: Path, given: Mapping[str, object]) -> None:
    """Raise InputError for options that a best.json has no use for."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"{name} {value} is not supported for {file} (leave it out): it holds one kernel.")


_WRITERS: Mapping[str, Callable[[api.Study], Callable[..., Path]]] = {
    "cuda": lambda study: study.export_header,
    "c": lambda study: study.export_object,
    "bundle": lambda study: study.export_bundle,
}
"""Formats whose functions have a name, and what writes them."""
_OF_A_KERNEL = ("best", *_WRITERS, "lbmpy", "defines", "flags")
"""Formats that hold one kernel."""
_OF_A_FILE = (*_WRITERS, "lbmpy")
"""Those for which a best.json will do."""
_BESIDE = {"c": ("{}_kernel.o", "{}.f90"), "lbmpy": ("{}.json",)}
"""Some formats write more files beside the one that is named: their names by its name without suffix."""
_FORMATS = (*_OF_A_KERNEL, "t4", "csv")


def _print_written(kind: str, path: Path, as_json: bool) -> None:
    _print_path(kind, path, as_json, [each.format(path.stem) for each in _BESIDE.get(kind, ())])


def _print_path(kind: str, path: Path, as_json: bool, beside: Sequence[str] = ()) -> None:
    """Print what was written. beside: names of files in the same folder."""
    if as_json:
        printing.emit_json("report" if kind == "report" else "export", {"kind": kind, "path": str(path)})
    else:
        others = f", and beside it {' and '.join(beside)}" if beside else ""
        printing.stdout().print(f"wrote {path}{others}", markup=False)
