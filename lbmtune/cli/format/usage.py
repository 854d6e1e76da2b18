"""Errors of the command line framework as one sentence, like every other bad input."""

from typing import Any

import typer

from lbmtune.errors import nearest

UsageError: Any = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "UsageError")
"""Click's class, which Typer has a copy of or imports, depending on its version."""


def sentence(error: Any, verb: str) -> str:
    """Return the argument, the rule that it breaks, and what to do. verb: empty if none is known."""
    command = f"lbmtune {verb}".rstrip()
    match type(error).__name__:
        case "NoSuchOption":
            of = f" of {verb}" if verb else ""
            return f"unknown option {error.option_name}{of}; {_meant(error) or f'{command} --help lists them.'}"
        case "MissingParameter":
            wanted = error.param
            return f"{verb} needs {wanted.metavar}: {wanted.help}; {command} --help says more."
    rule, _, meant = error.format_message().partition(". Did ")
    return f"{_clause(rule)}; {f'did {meant}' if meant else f'{command} --help says what it takes.'}"


def _meant(error: Any) -> str:
    """Return a question with the nearest option; empty if none is near."""
    known = {name.lstrip("-"): name for param in error.ctx.command.params for name in param.opts if name[0] == "-"}
    near = nearest(error.option_name.lstrip("-"), known)
    return f"did you mean {known[near]}?" if near else ""


def _clause(text: str) -> str:
    """Return a sentence of the framework as part of another."""
    return text[:1].lower() + text[1:].rstrip(".")
