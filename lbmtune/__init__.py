"""Performance analysis and autotuning of lattice Boltzmann kernels.

    from lbmtune import Case, Study, load, measure, plan, predict, render, select, study, trials, verify

Importing the package is cheap: it loads no array, GPU, search or plotting library.
"""

from typing import TYPE_CHECKING

from lbmtune.lazy import lazy

if TYPE_CHECKING:
    from lbmtune.api import Case, Study, load, measure, plan, predict, render, select, study, trials, verify
    from lbmtune.version import __version__

__all__ = ["Case", "Study", "__version__", "load", "measure", "plan", "predict", "render", "select"]
__all__ += ["study", "trials", "verify"]

__getattr__, __dir__ = lazy(
    __name__, {"lbmtune.api": [name for name in __all__ if name != "__version__"], "lbmtune.version": ["__version__"]}
)
