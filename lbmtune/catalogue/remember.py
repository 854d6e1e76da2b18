"""Results that are remembered up to so many bytes: large arrays that many trials share, and small ones beside them.

A limit on their number would let a dozen small domains, on which kernels are verified, displace the large one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_all: list[OrderedDict[Hashable, Any]] = []


def remembered(most_bytes: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function of hashable arguments that is worked out once; what was not asked for longest is forgotten first.

    What it returns is an array (anything with `nbytes`). The last result is kept however large it is.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known: OrderedDict[Hashable, Any] = OrderedDict()
        _all.append(known)

        @wraps(function)
        def look_up(*args: P.args, **kwargs: P.kwargs) -> R:
            key = (args, tuple(sorted(kwargs.items())))
            if key not in known:
                known[key] = function(*args, **kwargs)
                _shrink(known, most_bytes)
            known.move_to_end(key)
            found: R = known[key]
            return found

        return look_up

    return decorate


def forget_all() -> None:
    """Lets go of everything that is remembered: a device may need the memory."""
    for known in _all:
        known.clear()


def _shrink(known: OrderedDict[Hashable, Any], most_bytes: int) -> None:
    held = sum(value.nbytes for value in known.values())
    while held > most_bytes and len(known) > 1:
        held -= known.popitem(last=False)[1].nbytes
