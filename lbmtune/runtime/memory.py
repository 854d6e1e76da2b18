"""Memory of a program on a device."""

from typing import Any

import numpy as np

from lbmtune.backend.protocol import Device, Placing
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.sparse.index_list import listed_rows
from lbmtune.catalogue.sparse.nodes import index_list
from lbmtune.codegen.program import BARRIER, LIST, MACROSCOPICS, RINGS, SENT_SUMS, WALL_LINKS, Program
from lbmtune.runtime.wall_pass import wall_tables

Array = Any
_FIRST_VALUES = {BARRIER: 0, RINGS: 0.0, SENT_SUMS: np.nan}
"""Values that buffers between threads begin with: halos of rings are read before they are written."""


def allocate(device: Device, config: KernelConfig, elements: int, dtype: str, arrays: int) -> Array:
    """Return memory for a number of equal arrays of all cells, placed as the configuration says (if it does)."""
    placed: Any = config
    if not getattr(placed, "placed", False):
        return device.empty(elements, dtype)
    placing = Placing(placed.pages, placed.first_touch, placed.threads, arrays, placed.numa)
    return device.empty(elements, dtype, placing)


def array_names(program: Program) -> tuple[str, ...]:
    """Return the names of the arrays for which a simulation asks its device, in order."""
    placed = (LIST,) if getattr(program.config, "placed", False) else ()
    others = (MACROSCOPICS, *placed, *_FIRST_VALUES)
    return (*program.buffers(), *(name for name in others if name in program.arguments))


def other_buffers(program: Program, case: Case, device: Device) -> dict[str, Array]:
    """Return the index list, tables of walls and the buffers between threads or blocks that launches take, by name.

    Simulations with the same links share an index list. It never lies in the memory of states, which those of
    finalists share, too.
    """
    buffers = dict[str, Array]()
    for name, elements in program.other_buffers(case.domain).items():
        if name == LIST:
            buffers[name] = _index_list(program.config, case, device)
        elif name in _FIRST_VALUES:
            buffers[name] = device.empty(elements, program.dtype_of(name))
            buffers[name].fill(_FIRST_VALUES[name])
    return buffers | (wall_tables(case, program.config, device.xp) if WALL_LINKS in program.arguments else {})


def _index_list(config: KernelConfig, case: Case, device: Device) -> Array:
    listed = index_list(case, config, device.xp)
    if not getattr(config, "placed", False):
        return listed
    placed = allocate(device, config, len(listed), "uint32", listed_rows(case, config).rows)
    placed[...] = listed
    return placed
