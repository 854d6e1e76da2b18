"""The time of the pass of interpolated walls: scattered values, each of which moves a whole line of memory."""

from functools import lru_cache

import numpy as np

from lbmtune.catalogue.boundaries.cut_links import solid_in
from lbmtune.catalogue.boundaries.second_order import HALF, geometry_alone, interpolated, link_count, wall_parts
from lbmtune.catalogue.config import KernelConfig
from lbmtune.catalogue.footprint import WALL_POPULATIONS, wall_bytes
from lbmtune.catalogue.problem.case import Case

_PLANES = 12
"""Planes of the sampled part of a geometry."""


def wall_pass_bytes(case: Case, config: KernelConfig, line_bytes: int) -> float:
    """Return the bytes of an update that the pass moves: its tables, and the lines of the populations of links.

    A line with values of several links of a direction is moved once.
    """
    links, run = link_count(case) / case.fluid_sites, config.memory.run_in(case.domain[0])
    values = line_bytes // config.stored.bytes
    lines = _lines_of_a_link(geometry_alone(case), min(values, run or values), config.indirect)
    return links * (wall_bytes(config) - WALL_POPULATIONS * config.stored.bytes + lines * line_bytes)


@lru_cache(maxsize=256)
def _lines_of_a_link(case: Case, values: int, listed: bool) -> float:
    """Return the lines that are read and written for a link, in planes in the middle of the domain.

    values: of a direction that lie in a line; listed: fluid cells follow each other in memory.
    """
    window = [range(n) for n in case.domain]
    axis = case.stencil.dimensions - 1
    first = max(0, case.domain[axis] - _PLANES) // 2
    window[axis] = range(first, min(first + _PLANES, case.domain[axis]))
    part = window[0], window[1], window[2]
    fluid = ~solid_in(case, part, np).reshape(-1)
    line = (np.cumsum(fluid) if listed else np.arange(fluid.size)) // values
    links = lines = 0
    for c in filter(any, case.stencil.velocities):
        cut, near = interpolated(case, c, part, np).reshape(-1), wall_parts(case, c, part, np).reshape(-1) < HALF
        own, at_cell, behind = (len(np.unique(line[one])) for one in (cut, cut & near, cut & ~near))
        links, lines = links + int(np.count_nonzero(cut)), lines + 2 * own + at_cell + behind
    return lines / links if links else 0.0
