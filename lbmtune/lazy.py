"""Names of a package that are imported on first use, and the modules of a package."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any


def lazy(package: str, names: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names live in other modules.

    names: of each module, which is imported when the first of them is read.
    """
    modules = {name: module for module, several in names.items() for name in several}

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return getattr_, lambda: sorted(modules)


def modules_with(name: str, package: str, path: Iterable[str]) -> Iterator[ModuleType]:
    """Import the modules of a package, in the order of their file names, and yield those that define a name.

    path: `__path__` of the package.
    """
    modules = (import_module(f"{package}.{found.name}") for found in iter_modules(path))
    return (module for module in modules if hasattr(module, name))
