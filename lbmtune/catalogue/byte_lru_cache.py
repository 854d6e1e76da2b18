"""Results that are remembered up to so many bytes: large arrays that many trials share, and small ones beside them.

A limit on their number would let a dozen small domains, on which kernels are verified, displace the large one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_all: list[OrderedDict[Hashable, Any]] = []


class Remembered(Generic[P, R]):
    """A function of hashable arguments that is worked out once; what was not asked for longest is forgotten first.

    What it returns is an array (anything with `nbytes`). The last result is kept however large it is.
    """

    def __init__(self, function: Callable[P, R], most_bytes: int) -> None:
        self._function, self._most_bytes = function, most_bytes
        self._known: OrderedDict[Hashable, Any] = OrderedDict()
        _all.append(self._known)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result, from memory where it is there."""
        key = _key(args, kwargs)
        if key not in self._known:
            self._known[key] = self._function(*args, **kwargs)
            _shrink(self._known, self._most_bytes)
        self._known.move_to_end(key)
        found: R = self._known[key]
        return found

    def known(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """The result where it is remembered; else None, and nothing is worked out."""
        found: R | None = self._known.get(_key(args, kwargs))
        return found

    def forget(self) -> None:
        """Lets go of all results."""
        self._known.clear()

    @property
    def held_bytes(self) -> int:
        """Of all results that are remembered now."""
        return _bytes_of(self._known)


def remembered(most_bytes: int) -> Callable[[Callable[P, R]], Remembered[P, R]]:
    """Makes a function one that remembers up to so many bytes of results."""
    return lambda function: Remembered(function, most_bytes)


def forget_all() -> None:
    """Lets go of everything that is remembered: a device may need the memory."""
    for known in _all:
        known.clear()


def _key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    return args, tuple(sorted(kwargs.items()))


def _shrink(known: OrderedDict[Hashable, Any], most_bytes: int) -> None:
    held = _bytes_of(known)
    while held > most_bytes and len(known) > 1:
        held -= known.popitem(last=False)[1].nbytes


def _bytes_of(known: OrderedDict[Hashable, Any]) -> int:
    return sum(value.nbytes for value in known.values())
