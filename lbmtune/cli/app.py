"""The application: a table of verbs, each imported when it runs."""

import logging
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from lbmtune import __version__
from lbmtune.cli.arguments.options import with_single_options
from lbmtune.records.store import provide_cache

LOG = logging.getLogger("lbmtune")


class Verb(NamedTuple):
    """The place of a verb, as 'module:function' below lbmtune.cli.verbs, and its line of help."""

    place: str
    summary: str


VERBS = {
    "devices": Verb("inspect:devices", "List devices with their bandwidths and description files."),
    "study": Verb("study:study", "Search the fastest kernel; write report.html and best.json."),
    "worker": Verb("worker:worker", "Help a study that several processes share."),
    "list": Verb("list:list_catalogue", "List the catalogue and count legal configurations."),
    "explain": Verb("inspect:explain", "Show if a configuration is legal, and what it costs."),
    "render": Verb("inspect:render", "Print the source text of a kernel."),
    "predict": Verb("predict:predict", "Predict the speed of a configuration on a device."),
    "rank": Verb("predict:rank", "Rank the space of a study by the model."),
    "plan": Verb("plan:plan", "Plan memory: largest domains, and devices needed."),
    "vary": Verb("predict:vary", "Predict the speed for each value of a knob."),
    "verify": Verb("run:verify", "Check a configuration against the oracle."),
    "measure": Verb("run:measure", "Verify a configuration, then time it."),
    "accuracy": Verb("run:accuracy", "Measure the errors of a precision against float64."),
    "profile": Verb("profile:profile", "Split the lost speed of a kernel by cause."),
    "reproduce": Verb("reproduce:reproduce", "Reproduce published experiments, or a recorded speed."),
    "compare": Verb("compare:compare", "Compare studies; exit code 4 if one is slower."),
    "report": Verb("results:report", "Write the report of a study from its records."),
    "export": Verb("results:export", "Write best.json, a CUDA header or the trials of a study."),
}
RENAMED = {"claims": "reproduce"}
"""Verbs by their former names, which still work."""


class Command(TyperCommand):
    """A verb whose help names its arguments without Python's types."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            records = [p.get_help_record(ctx) for p in self.get_params(ctx) if p.param_type_name == kind]
            rows = [(name.split()[0] if kind == "argument" else name, text) for name, text in filter(None, records)]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


class Verbs(TyperGroup):
    """The verbs of the table; the module of one is imported when that verb is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(VERBS)  # type: ignore[assignment]  # the names, of which near ones are suggested

    def list_commands(self, _: Any) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, _: Any, name: str) -> Any:
        """Return a verb by its name or a former one, or None."""
        now = RENAMED.get(name, name)
        if now not in VERBS:
            return None
        if now != name:
            LOG.warning("%s is called %s now; the old name still works.", name, now)
        return verb(now)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write the table of verbs."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.summary) for name, one in VERBS.items()])


@cache
def verb(name: str) -> Any:
    """Import a verb and return its command, whose help begins with its line of the table."""
    module, _, function = VERBS[name].place.partition(":")
    single = _typer()
    found = getattr(import_module(f"lbmtune.cli.verbs.{module}"), function)
    help_text = "\n".join((VERBS[name].summary, *(found.__doc__ or "").splitlines()[1:]))
    single.command(name, cls=Command, help=help_text)(with_single_options(found))
    return typer.main.get_command(single)


def _typer(**more: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,  # tables of options take half of a narrow terminal for names of Python's types
        pretty_exceptions_enable=False,
        **more,
    )


app = _typer(
    name="lbmtune",
    cls=Verbs,
    help="Performance analysis and autotuning of lattice Boltzmann kernels.",
    no_args_is_help=True,
)


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
    if remark := provide_cache():
        LOG.warning(remark)


@cache
def command() -> Any:
    """Return the application as it is run."""
    return typer.main.get_command(app)
