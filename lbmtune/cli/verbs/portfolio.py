"""Search few kernels for many domains: what `lbmtune study --domains` does."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

import lbmtune.cli.format as formats
from lbmtune import api
from lbmtune.api.studies.folders import new_folder
from lbmtune.cli.begun import begun_s
from lbmtune.cli.format import output
from lbmtune.cli.format.portfolio import print_portfolio
from lbmtune.files.studyfile import base_study, load_study, overridden
from lbmtune.records.portfolio_store import ASKED, holds_portfolio, read_asked
from lbmtune.records.spec import StudySpec

LOG = logging.getLogger("lbmtune")


def search_portfolio(
    study_file: str | None,
    domains: str | None,
    device: str,
    out: Path | None,
    *,
    overrides: Sequence[str],
    case_given: bool,
    resume: bool,
    refresh: bool,
    calibrate: bool,
    as_json: bool,
) -> None:
    """Search, check and print kernels for many domains."""
    kept = read_asked(out) if resume and out and holds_portfolio(out) else None
    spec = overridden(kept.spec, overrides) if kept and study_file is None else _spec(study_file, overrides, case_given)
    text = domains or (kept.domains if kept else "")
    folder = out or new_folder(f"{spec.name}-portfolio", device, resume=resume, holds=ASKED)
    try:
        with formats.Progress(output.stderr()) as progress:
            place, best = api.portfolio(
                spec,
                text,
                device,
                folder,
                resume=resume,
                refresh=refresh,
                calibrate=calibrate,
                observer=progress,
                begun_s=begun_s(),
            )
    except KeyboardInterrupt:
        again = ["lbmtune", "study", "--device", device, "--output", str(folder), "--resume"]
        LOG.info("stopped; what is finished is in %s. Go on with: %s", folder, shlex.join(again))
        raise typer.Exit(130) from None
    if as_json:
        output.emit_json(
            "portfolio", {"portfolio": str(place), "best": str(place / "best.json"), **_facts(best.portfolio)}
        )
    elif best.portfolio:
        print_portfolio(best.portfolio, place / "best.json")


def _spec(study_file: str | None, overrides: Sequence[str], case_given: bool) -> StudySpec:
    if study_file is None and case_given:
        return base_study(overrides)
    return load_study("quick" if study_file is None else study_file, overrides)


def _facts(portfolio: object) -> dict[str, object]:
    """Return what a portfolio says, without the texts of its kernels."""
    values = dict(vars(portfolio))
    values["kernels"] = [
        {name: getattr(one, name) for name in ("key", "configuration", "domain", "mlups", "covers", "worst_loss")}
        for one in values["kernels"]
    ]
    return values
