"""Fluid sites and an index list on a CPU."""

from lbmtune.model.cpu.direct import terms
from lbmtune.model.cpu.inputs import CpuInputs, Family


class SparseInputs(CpuInputs):
    """A kernel of fluid sites, whose streams do not lie side by side."""

    grouped = False
    has_streams = False


MODEL = Family(SparseInputs, terms)
