"""The errors a person can cause, each with the exit code of the command line.

A message is one sentence that holds the value, the rule it breaks and what to do.
Everything else that is raised is a bug and propagates.
"""

import difflib
import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from lbmtune.printable import printable, shortened

T = TypeVar("T")
_LONGEST = 2000
"""Characters of a sentence, which may cite a path."""
_SHOWN = 60
"""Characters of a path that is too long."""


class LbmtuneError(Exception):
    """Base of all expected errors; `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, sentence: str) -> None:
        one = sentence.replace(".; ", "; ").replace(".). ", "). ")  # of an error that it cites, which ends as it does
        super().__init__(shortened(printable(one), _LONGEST))  # whatever the file was that it cites


class NothingValidError(LbmtuneError):
    """The run finished, but no configuration gave a verified measurement."""

    exit_code = 1


class InputError(LbmtuneError):
    """Bad input: a study file, a configuration, a path, an option."""

    exit_code = 2


class DeviceUnavailableError(LbmtuneError):
    """The requested device cannot be used: no GPU, or no working driver."""

    exit_code = 3


class ChangedSpeedError(LbmtuneError):
    """A speed that was measured before does not hold: it has changed by more than the noise."""

    exit_code = 4


class TimeOverError(Exception):
    """The end of what was in progress as the time of its study is over: a signal within, and nobody's error."""


def given_path(reference: str | os.PathLike[str]) -> Path:
    """Return a path that a user gave. Raises InputError if it is longer than any file system allows."""
    path = Path(reference)
    try:
        path.lstat()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            shown = str(path)[:_SHOWN]
            raise InputError(f"{shown}... names no file: {error.strerror}; correct the path.") from error
    except ValueError:  # characters that no path has; who opens it says which
        pass
    return path


def unknown(kind: str, value: object, known: Iterable[str]) -> InputError:
    """Return an InputError for a name outside a known set, with the closest known name suggested."""
    return InputError(f"unknown {kind} {value!r}; {suggestion(value, sorted(known))}")


def named(kind: str, name: str, known: Mapping[str, T]) -> T:
    """Return what has a name. Raises InputError for a name outside a known set."""
    if name not in known:
        raise unknown(kind, name, known)
    return known[name]


_MANY = 24
"""Names up to which a sentence lists them all."""


def suggestion(value: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return a question with the nearest known name; if none is near, `otherwise`, by default the list of names."""
    names = list(known)
    near = nearest(value, names)
    listed = f"choose one of {', '.join(names)}." if len(names) <= _MANY else "lbmtune list shows all."
    return f"did you mean {near!r}?" if near else otherwise or listed


def nearest(value: object, known: Iterable[str]) -> str | None:
    """Return the nearest known name, or None."""
    names = {name.lower(): name for name in known}
    return next((names[near] for near in difflib.get_close_matches(str(value).lower(), list(names), n=1)), None)
