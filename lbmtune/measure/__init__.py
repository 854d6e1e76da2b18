"""Proof and timing: the oracle, verification, the timing protocol, isolation, micro-benchmarks.

`lbmtune.measure` is also the function that measures one kernel: this package can be called as `lbmtune.api.measure`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Measure a kernel (`lbmtune.api.measure`)."""
        return import_module("lbmtune.api").measure(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
