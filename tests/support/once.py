"""Make what several test files need once in a run of the tests, which several processes share."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from functools import wraps
from inspect import signature
from pathlib import Path
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
FOLDER = "LBMTUNE_TESTS_SHARE"
"""Environment variable: the folder of what the processes of this run have made."""


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Let the first process that calls a pure function with some arguments do so; the others read what it returned.

    They wait for it meanwhile. Outside of tests each process calls it.
    """

    known: dict[tuple[Any, ...], T] = {}

    @wraps(function)
    def found(*given: P.args, **named: P.kwargs) -> T:
        bound = signature(function).bind(*given, **named)
        bound.apply_defaults()
        if bound.args not in known:
            known[bound.args] = _kept(function, bound.args)
        return known[bound.args]

    return found


def _kept(function: Callable[..., T], asked: tuple[Any, ...]) -> T:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return function(*asked)
    with Path(folder, " ".join(map(_name, (function, *asked)))).open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if not os.fstat(file.fileno()).st_size:
            pickle.dump(function(*asked), file)
        file.seek(0)
        result: T = pickle.load(file)
    return result


def _name(one: object) -> str:
    return f"{one.__module__}.{one.__qualname__}" if isinstance(one, type | FunctionType) else str(one)
