"""Verbs that read a finished study: report, export. And what a study writes at its end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lbmtune.cli.arguments.options import RESULTS, Folder, Json, Out
from lbmtune.errors import InputError, NothingValidError

if TYPE_CHECKING:
    from lbmtune.records.claims import Claims
    from lbmtune.records.study import StudyRecord

REPORT, BEST = "report.html", "best.json"

Target = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="file to write (default: inside the study folder)"),
]


@dataclass(frozen=True)
class Written:
    """The files that a study ends with. best: None where no configuration was verified."""

    report: Path
    best: Path | None


def report(study: Folder, output: Target = None, out: Out = RESULTS, as_json: Json = False) -> None:
    """Makes the page of a study, or of a run of claims, from records."""
    from lbmtune.claims.store import PAGE, claims_folder, read_claims
    from lbmtune.cli.arguments.configs import study_folder
    from lbmtune.records.store import read_study

    _check_folder(out)
    if claimed := claims_folder(study, out):
        path = output or claimed / PAGE
        write_claims(read_claims(claimed), path)
        _say_path("report", path, as_json)
        return
    folder = study_folder(study, out)
    path = output or folder / REPORT
    write_report(read_study(folder), path)
    _say_path("report", path, as_json)


def export(study: Folder, output: Target = None, out: Out = RESULTS, as_json: Json = False) -> None:
    """Writes best.json of a study, which lbmtune.load reads."""
    from lbmtune.cli.arguments.configs import study_folder
    from lbmtune.export import write_best
    from lbmtune.records.store import read_study

    _check_folder(out)
    folder = study_folder(study, out)
    record = read_study(folder)
    if not record.ranked:
        raise NothingValidError(f"{folder} holds no verified measurement; there is nothing to export.")
    path = output or folder / BEST
    write_best(record, path)
    _say_path("best", path, as_json)


def _check_folder(out: Path) -> None:
    """Refuses a file where the folder of all studies is meant: what is written would go beside the study instead."""
    if out.suffix in (".html", ".json"):
        raise InputError(f"--out {out}: that is the folder which holds the studies; say --output {out}.")


def write_results(record: StudyRecord, folder: Path) -> Written:
    """Report and best.json of a study, in its folder."""
    from lbmtune.export import write_best

    write_report(record, folder / REPORT)
    if record.winner is None:
        return Written(folder / REPORT, None)
    write_best(record, folder / BEST)
    return Written(folder / REPORT, folder / BEST)


def write_report(record: StudyRecord, path: Path) -> None:
    """Write the report, with the winner's kernel and the halos of kernels with several steps per launch."""
    import lbmtune.report as reports
    from lbmtune.export import printed_kernel
    from lbmtune.model.predict import cells_read

    reports.write_report(record, path, printed_kernel(record), partial(cells_read, record.header.spec.case))


def write_claims(claims: Claims, path: Path) -> None:
    """The page of a run of claims."""
    from lbmtune.report.claims import write_claims_page

    write_claims_page(claims, path)


def _say_path(kind: str, path: Path, as_json: bool) -> None:
    from lbmtune.cli.format import output

    if as_json:
        output.emit_json({kind: str(path)})
    else:
        output.stdout().print(f"wrote {path}", markup=False)
