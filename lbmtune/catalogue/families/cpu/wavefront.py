"""Sweeps: several time steps of an in-place scheme in one pass over the rows of a box, each some rows behind the last.

A cell may take a step as soon as what it touches has taken the step before, and what it touches in place belongs to
cells of its neighbourhood. So a tile of rows can go through several steps while it stays in a cache, if the rows of
each step lie further back than those of the step before. Source: Wittmann, Hager, Wellein 2010 (temporal blocking);
Wonnacott 2000 (time skewing).
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

from lbmtune.catalogue.config import CpuConfig
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.schemes.scheme import Phase, Scheme
from lbmtune.lattice import Lattice

MAX_STEPS = 16
"""Of a launch: beyond them tiles that fit in a cache are mostly overlap."""


@lru_cache(maxsize=64)
def lag(scheme: Scheme, lattice: Lattice) -> tuple[int, int]:
    """Rows along y and along z by which a step stays behind the one before it.

    The largest distance between two rows that touch the same slot of the same row of storage in steps that follow each
    other.
    """
    phases = [scheme.phase(lattice, parity) for parity in range(scheme.period)]
    pairs = [(now, phases[(n + 1) % len(phases)]) for n, now in enumerate(phases)]
    y, z = (max(_distance(*pair, axis) for pair in pairs) for axis in (1, 2))
    return y, z


def _distance(now: Phase, later: Phase, axis: int) -> int:
    return max(abs(a.offset[axis] - b.offset[axis]) for a in now.places() for b in later.places() if a.slot == b.slot)


def sweeps(scheme: Scheme, lattice: Lattice) -> bool:
    """Whether rows of several steps can be under way at once: one lattice, one pass a step, rows in any order."""
    passes = [scheme.passes(lattice, parity) for parity in range(scheme.period)]
    simple = (len(one) == 1 and not one[0].blockwise and not one[0].ordered for one in passes)
    return scheme.in_place and all(simple)


def fetched(case: Case, config: CpuConfig) -> float:
    """How often a launch brings a row from memory, where a tile stays in a cache until it has taken all its steps.

    Once, and again along each edge between tiles, and where regions that shrink from step to step meet those that grow.
    """
    behind = config.steps - 1
    if not behind:
        return 1.0
    flat, (y, z) = case.stencil.dimensions == 2, lag(config.propagation, case.stencil)
    _, ny, nz = case.domain
    several = slabs(case, config)
    if flat:
        return 1 + 2 * behind * y * several / ny
    edges = ceil(ny / config.tile_y) - 1 + 2
    return (1 + edges * behind * y / ny) * (1 + 2 * behind * z * several / nz)


def slabs(case: Case, config: CpuConfig) -> int:
    """Those that a launch goes through at once, each by a thread: a domain may be too thin for as many as there are."""
    flat, lags = case.stencil.dimensions == 2, lag(config.propagation, case.stencil)
    along = case.domain[1 if flat else 2] // max(1, 2 * lags[not flat] * (config.steps - 1))
    return max(1, min(config.threads, along))
