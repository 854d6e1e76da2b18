"""Performance analysis and autotuning of lattice Boltzmann kernels.

Importing the package is cheap: no array, GPU, search or plotting library is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lbmtune.runtime.load import load

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def __getattr__(name: str) -> object:
    if name == "load":
        from lbmtune.runtime.load import load

        return load
    raise AttributeError(f"module 'lbmtune' has no attribute {name!r}")
