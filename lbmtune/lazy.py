"""Names of a package that are imported on first use, and the modules that it has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def lazy(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names live in other modules.

    modules: the module of each name. It is imported when the name is first read.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return getattr_, lambda: sorted(modules)


def modules_of(path: Iterable[str], first: Sequence[str], others: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of the modules in a package's `__path__` but for `others`: those of `first` lead, in order."""
    found = [one.name for one in iter_modules(path) if one.name not in {*first, *others}]
    return (*first, *sorted(found))
