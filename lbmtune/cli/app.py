"""The application: every verb, with what it imports left to the verb itself so that help is quick."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from lbmtune import __version__
from lbmtune.cli.arguments.folders import provide_cache
from lbmtune.cli.verbs import claims, profile, results
from lbmtune.cli.verbs import inspect as facts
from lbmtune.cli.verbs import list as listing
from lbmtune.cli.verbs import run as checks
from lbmtune.cli.verbs import study as tune

app = typer.Typer(
    name="lbmtune",
    help="Performance analysis and autotuning of lattice Boltzmann kernels.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # tables of options take half of a narrow terminal for names of Python's types
    pretty_exceptions_enable=False,
)


class Verb(TyperCommand):
    """A verb; its help names arguments without Python's types."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            records = [p.get_help_record(ctx) for p in self.get_params(ctx) if p.param_type_name == kind]
            rows = [(name.split()[0] if kind == "argument" else name, told) for name, told in filter(None, records)]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lbmtune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    provide_cache()


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
    app.command(verb.__name__.removesuffix("_catalogue"), cls=Verb)(verb)


@cache
def command() -> Any:
    """The application as it is run, made once: reading the signatures of all verbs takes longer than most verbs."""
    return typer.main.get_command(app)
