"""CUDA text of persistent kernels, which keep their state on chip over all steps of a launch."""

from lbmtune.catalogue.families.cuda.persistent import Persistent
from lbmtune.catalogue.problem.case import Case
from lbmtune.codegen.cuda.persistent import moments, populations
from lbmtune.codegen.program import Program

__all__ = ["render"]


def render(case: Case, config: Persistent) -> Program:
    """Return the program of a legal configuration: one launch for any number of time steps."""
    return moments.render(case, config) if config.of_moments else populations.render(case, config)
