"""Least-recently-used caches limited in bytes, for arrays that many trials share.

With a limit on their number, a dozen small domains, on which kernels are verified, would evict the large one.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import update_wrapper
from types import ModuleType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
_all: list[OrderedDict[Hashable, Any]] = []


class Remembered(Generic[P, R]):
    """A function of hashable arguments with cached results; the least recently used one is evicted first.

    Results are arrays (anything with `nbytes`). The last result is cached whatever its size.
    """

    def __init__(self, function: Callable[P, R], most_bytes: int) -> None:
        self._function, self._most_bytes = function, most_bytes
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        _all.append(self._results)
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result, from the cache if it is there."""
        key = _key(args, kwargs)
        if key not in self._results:
            self._results[key] = self._function(*args, **kwargs)
            _shrink(self._results, self._most_bytes)
        self._results.move_to_end(key)
        found: R = self._results[key]
        return found

    def known(self, *args: P.args, **kwargs: P.kwargs) -> R | None:
        """Return the cached result, or None, without computing it."""
        found: R | None = self._results.get(_key(args, kwargs))
        return found

    def forget(self) -> None:
        """Empty the cache."""
        self._results.clear()

    @property
    def held_bytes(self) -> int:
        """Return the bytes of all cached results."""
        return _bytes_of(self._results)


def remembered(most_bytes: int) -> Callable[[Callable[P, R]], Remembered[P, R]]:
    """Return a decorator that caches up to most_bytes of a function's results."""
    return lambda function: Remembered(function, most_bytes)


def forget_all() -> None:
    """Empty all caches, if a device needs the memory."""
    for results in _all:
        results.clear()


def current_device(*args: Any) -> int:
    """Return the number of the GPU that is current for a module of arrays among arguments; 0 if there is none.

    Arrays of one GPU are slow on another one of the process.
    """
    modules = (one for one in args if isinstance(one, ModuleType) and hasattr(one, "cuda"))
    return next((int(one.cuda.runtime.getDevice()) for one in modules), 0)


def _key(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    return args, tuple(sorted(kwargs.items())), current_device(*args, *kwargs.values())


def _shrink(results: OrderedDict[Hashable, Any], most_bytes: int) -> None:
    held = _bytes_of(results)
    while held > most_bytes and len(results) > 1:
        held -= results.popitem(last=False)[1].nbytes


def _bytes_of(results: OrderedDict[Hashable, Any]) -> int:
    return sum(value.nbytes for value in results.values())
