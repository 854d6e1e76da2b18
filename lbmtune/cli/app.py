"""The application: every verb, with what it imports left to the verb itself so that help is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from lbmtune import __version__
from lbmtune.cli import checks, claims, facts, listing, profile, results, tune

app = typer.Typer(
    name="lbmtune",
    help="Performance analysis and autotuning of lattice Boltzmann kernels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lbmtune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    pass


for verb in (
    facts.devices,
    tune.study,
    listing.list_catalogue,
    facts.explain,
    facts.render,
    facts.predict,
    checks.verify,
    checks.measure,
    checks.accuracy,
    profile.profile,
    claims.claims,
    results.report,
    results.export,
):
    app.command(verb.__name__.removesuffix("_catalogue"))(verb)
