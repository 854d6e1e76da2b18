"""The flows by name, one file each."""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows.box import box as box
from lbmtune.catalogue.problem.flows.cavity import cavity as cavity
from lbmtune.catalogue.problem.flows.channel import channel as channel
from lbmtune.catalogue.problem.flows.flow import Array, Flow
from lbmtune.catalogue.problem.flows.flow import Parameters as Parameters
from lbmtune.catalogue.problem.flows.half_channel import half_channel as half_channel
from lbmtune.catalogue.problem.flows.pipe import pipe as pipe
from lbmtune.catalogue.problem.flows.porous import porous as porous
from lbmtune.lazy import modules_with

FLOWS: Mapping[str, Flow] = {module.FLOW.name: module.FLOW for module in modules_with("FLOW", __name__, __path__)}
"""The `FLOW` of each file of this folder, by name."""


def initial_flow(case: Case, xp: ModuleType | None = None) -> tuple[Array, Array]:
    """Return density (nz, ny, nx) and velocity (3, nz, ny, nx), float64, in lattice units. xp: numpy, or cupy."""
    xp = xp or import_module("numpy")  # here: the command line starts without arrays
    initial = FLOWS[case.flow].initial if case.flow in FLOWS else None
    if initial:
        return initial(case, xp)
    shape = case.domain[::-1]
    return xp.ones(shape), xp.zeros((3, *shape))
