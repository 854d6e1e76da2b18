"""The application: a table of verbs, each imported when it runs."""

import logging
from collections.abc import Collection
from functools import cache
from importlib import import_module
from inspect import cleandoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from lbmtune import __version__
from lbmtune.cli.arguments.options import with_single_options
from lbmtune.errors import unknown
from lbmtune.records.store import provide_cache

LOG = logging.getLogger("lbmtune")


class Verb(NamedTuple):
    """The place of a verb, as 'module:function' below lbmtune.cli.verbs, and its line of help."""

    place: str
    summary: str


GROUPS = {
    "Find the fastest kernel": {
        "study": Verb("study:study", "Search the fastest kernel; write report.html and best.json."),
        "kernel": Verb("kernel:kernel", "Write the description of a kernel of your own."),
        "watch": Verb("watch:watch", "Follow a study that runs in another terminal."),
        "worker": Verb("worker:worker", "Help a study that several processes share."),
        "predict": Verb("predict:predict", "Predict the speed of a configuration on a device."),
        "rank": Verb("predict:rank", "Rank the space of a study by the model."),
        "vary": Verb("predict:vary", "Predict the speed for each value of a knob."),
        "plan": Verb("plan:plan", "Plan memory: largest domains, and devices needed."),
    },
    "Look at devices and kernels": {
        "devices": Verb("inspect:devices", "List devices with their bandwidths and description files."),
        "doctor": Verb("doctor:doctor", "Say what of this machine disturbs studies, and what to do."),
        "list": Verb("list:list_catalogue", "List the catalogue and count legal configurations."),
        "explain": Verb("inspect:explain", "Show if a configuration is legal, and what it costs."),
        "render": Verb("inspect:render", "Print the source text of a kernel."),
    },
    "Prove and measure": {
        "verify": Verb("run:verify", "Check a configuration against the oracle."),
        "measure": Verb("run:measure", "Verify a configuration, then time it."),
        "accuracy": Verb("run:accuracy", "Measure the errors of a precision against float64."),
        "profile": Verb("profile:profile", "Split the lost speed of a kernel by cause."),
        "reproduce": Verb("reproduce:reproduce", "Reproduce published experiments, or a recorded speed."),
    },
    "Share results": {
        "compare": Verb("compare:compare", "Compare studies; exit code 4 if one is slower."),
        "report": Verb("results:report", "Write the report of a study from its records."),
        "export": Verb("results:export", "Write best.json, a CUDA header or the trials of a study."),
    },
}
"""The verbs by what they are for, as the help lists them."""
VERBS = {name: one for group in GROUPS.values() for name, one in group.items()}
_EXAMPLES = "Examples"
"""The heading of the examples in the docstring of a verb, and in its help."""
RENAMED = {"claims": "reproduce"}
"""Verbs by their former names, which still work."""
RENAMED_OPTIONS = {"--out": ("--studies", "--output"), "--page": ("--output",)}
"""Options by their former names, which still work, and what they are called now: the first of these that a verb has."""


class Command(TyperCommand):
    """A verb whose help names its arguments without Python's types, and ends with examples."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            records = [p.get_help_record(ctx) for p in self.get_params(ctx) if p.param_type_name == kind]
            rows = [(name.split()[0] if kind == "argument" else name, text) for name, text in filter(None, records)]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read arguments, options by their former names, too."""
        known = {name for one in self.get_params(ctx) for name in one.opts}
        return super().parse_args(ctx, [_by_its_name(word, known) for word in args])

    def format_epilog(self, _: Any, formatter: Any) -> None:
        """Write the examples, one command a line."""
        with formatter.section(_EXAMPLES):
            for line in (self.epilog or "").splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Verbs(TyperGroup):
    """The verbs of the table; the module of one is imported when that verb is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._completing = False

    def list_commands(self, _: Any) -> list[str]:
        """Return the names of all verbs."""
        return list(VERBS)

    def get_command(self, _: Any, name: str) -> Any:
        """Return a verb by its name or a former one, or None."""
        now = RENAMED.get(name, name)
        if now not in VERBS:
            return None
        if self._completing:
            return TyperCommand(now, help=VERBS[now].summary)
        if now != name:
            LOG.warning("%s is called %s now; the old name still works.", name, now)
        return verb(now)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the verb that arguments begin with, and the others. Raises InputError for a name that is none."""
        name = args[0]
        if name[:1].isalnum() and name not in (*VERBS, *RENAMED) and not ctx.resilient_parsing:
            raise unknown("verb", name, VERBS)
        return super().resolve_command(ctx, args)

    def format_commands(self, _: Any, formatter: Any) -> None:
        """Write a table of verbs for each thing that they are for."""
        width = max(map(len, VERBS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", one.summary) for name, one in group.items()])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return completions with the summaries of the table, for which no verb is imported."""
        before, self._completing = self._completing, True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._completing = before


def _by_its_name(word: str, known: Collection[str]) -> str:
    """Return a word of a command line with the name that an option has now. known: the options of the verb."""
    former, equals, value = word.partition("=")
    name = next((one for one in RENAMED_OPTIONS.get(former, ()) if one in known and former not in known), former)
    if name != former:
        LOG.warning("%s is called %s now; the old name still works.", former, name)
    return f"{name}{equals}{value}"


@cache
def verb(name: str) -> Any:
    """Import a verb and return its command, whose help begins with its line of the table."""
    module, _, function = VERBS[name].place.partition(":")
    single = _typer()
    found = getattr(import_module(f"lbmtune.cli.verbs.{module}"), function)
    said, _, examples = cleandoc(found.__doc__).partition(f"\n{_EXAMPLES}:\n")
    help_text = "\n".join((VERBS[name].summary, *said.splitlines()[1:]))
    single.command(name, cls=Command, help=help_text, epilog=cleandoc(examples))(with_single_options(found))
    return typer.main.get_command(single)


def _typer(*, completion: bool = False, **more: Any) -> typer.Typer:
    return typer.Typer(
        add_completion=completion,
        context_settings={"help_option_names": ["-h", "--help"]},
        rich_markup_mode=None,  # tables of options take half of a narrow terminal for names of Python's types
        pretty_exceptions_enable=False,
        **more,
    )


app = _typer(
    completion=True,
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
