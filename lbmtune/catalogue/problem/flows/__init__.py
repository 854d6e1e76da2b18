"""The flows by name, one file each."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows.box import box, taylor_green
from lbmtune.catalogue.problem.flows.cavity import cavity
from lbmtune.catalogue.problem.flows.channel import channel
from lbmtune.catalogue.problem.flows.flow import Flow, Parameters
from lbmtune.catalogue.problem.flows.half_channel import half_channel
from lbmtune.catalogue.problem.flows.pipe import PIPE_INLET, pipe
from lbmtune.catalogue.problem.flows.porous import porous
from lbmtune.lazy import modules_of

__all__ = [
    "FLOWS",
    "PIPE_INLET",
    "Flow",
    "Parameters",
    "box",
    "cavity",
    "channel",
    "half_channel",
    "initial_flow",
    "pipe",
    "porous",
    "taylor_green",
]

Array = Any
_FILES = modules_of(__path__, ("box", "cavity", "channel", "pipe", "half_channel", "porous"), ("flow",))
FLOWS: Mapping[str, Flow] = {
    found.name: found for found in (import_module(f"{__name__}.{file}").FLOW for file in _FILES)
}
"""The flows of all files of this folder, in the order of lists."""


def initial_flow(case: Case, xp: ModuleType | None = None) -> tuple[Array, Array]:
    """Return density (nz, ny, nx) and velocity (3, nz, ny, nx), float64, in lattice units. xp: numpy, or cupy."""
    xp = xp or import_module("numpy")  # here: the command line starts without arrays
    initial = FLOWS[case.flow].initial if case.flow in FLOWS else None
    if initial:
        return initial(case, xp)
    shape = case.domain[::-1]
    return xp.ones(shape), xp.zeros((3, *shape))
