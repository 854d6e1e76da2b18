"""Cut links in temporal blocking: warps at a face execute longer texts, and the other warps of their block wait.

Moments have a text of their own for warps at a face across x. Warps at other faces have a general text with a branch
for each link: nothing hides the latency of its instructions, since it computes rows one after another. The first planes
of a chunk, which some stages skip, have that text, too, and so have warps with a solid cell or a neighbour of one,
which are counted on the geometry. So blocks take unequally long. Populations have only the general text, which all
warps of a block at a face across x execute.
"""

from functools import lru_cache
from heapq import heapreplace
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from lbmtune.catalogue.boundaries.cell_flags import WORDS, words
from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking, before_tile, sector_cells, tile
from lbmtune.catalogue.limits import SCHEDULERS, WARP
from lbmtune.catalogue.problem.case import Case
from lbmtune.catalogue.problem.flows import porous
from lbmtune.lattice import Lattice
from lbmtune.model.gpu.temporal_blocking.inputs import chunk_planes, useful_planes


class _Texts(NamedTuple):
    """Instructions of the texts for faces across x and for any links, over those of a text without a cut link.

    alone: cycles of an instruction of the general text for a single warp; by_rows: that text has fewer instructions for
    rows beyond a face, and for rows whose links only one face cuts.
    """

    across_x: float
    general: float
    alone: float
    by_rows: bool


_OF_MOMENTS = _Texts(1.22, 1.71, 2.2 + 12 * 11 / 235, by_rows=True)
"""Medians of 89 kernels compiled for compute capability 9.0; alone: by their stall counts, and 12 jumps in 235
instructions, each of 11 cycles by a loop of a single warp."""
_OF_POPULATIONS = _Texts(2.6, 2.6, 2.2, by_rows=False)
"""From 12 kernels compiled for it, BGK and regularised, two and three steps in D3Q19: the longest path through the loop
over the loop of the same kernel without walls, 2.46 to 2.69 without spills (2.71 to 2.92 with many); alone: 2.0 to 2.1
by stall counts, in which a jump, one in 35, has 5.6 of its 11 cycles."""


def _texts(config: TemporalBlocking) -> _Texts:
    return _OF_MOMENTS if config.of_moments else _OF_POPULATIONS


Array = Any


def evenness(case: Case, config: TemporalBlocking, multiprocessors: int, together: int) -> float:
    """Return the ideal time over the actual one: without cut links and with no idle multiprocessor.

    Blocks begin in order, each when another one has ended.
    """
    taken = _blocks(case, config, together)
    ends = [0.0] * min(multiprocessors * together, len(taken))
    for one in taken:
        heapreplace(ends, ends[0] + one)
    x, y, _ = config.blocks(case)
    return x * y * sum(useful_planes(case, config)) / (multiprocessors * together) / max(ends)


@lru_cache(maxsize=1024)
def _blocks(case: Case, config: TemporalBlocking, together: int) -> tuple[float, ...]:
    """Return the durations of all blocks in planes without a cut link, in the order in which they begin."""
    across, along, up = config.blocks(case)
    rows = [_rows_at_faces(case, config, y) for y in range(along)]
    corner = _corner(case.stencil) if _texts(config).by_rows else 1.0
    found: list[float] = []
    for z, planes in enumerate(useful_planes(case, config)):
        mixed = _mixed(case, config, first=z == 0, last=z == up - 1)
        inside = {n: _taken(config, planes, mixed, n, 0.0, together) for n in {*rows}}
        beside = {n: _taken(config, planes, mixed, n, corner, together) for n in {*rows}}
        for n in rows:
            found += [inside[n]] * across
            if case.walled_across(0):
                found[-across] = found[-1] = beside[n]
    if not case.geometry:
        return tuple(found)
    return tuple(map(sum, zip(found, _at_solids(case, config, together), strict=True)))


def _at_solids(case: Case, config: TemporalBlocking, together: int) -> list[float]:
    """Return the additional duration of each block with the general text at solid cells, in the order of blocks.

    A warp tests the planes of its stages, and the one behind them. A plane takes as long as such a warp alone, or as
    long as issuing the instructions of all warps.
    """
    across, along, up = config.blocks(case)
    steps, (nx, ny, nz) = config.steps, case.domain
    sector, height = sector_cells(config), -(-ny // along)
    width = tile(case.stencil, config)[0] if case.walled_across(0) else -(-nx // (sector * across)) * sector
    known = _beside_solids(case.lattice, case.geometry, case.domain)
    known = _within(
        known, [x * width - before_tile(case, config) for x in range(across)], WARP * config.cells_per_thread
    )
    warps = [y * height - steps + warp * config.rows for y in range(along) for warp in range(config.block[1])]
    known = _within(known.transpose(0, 2, 1), warps, config.rows).reshape(nz, across, along, -1)
    share = np.logical_or.reduce([np.roll(known, t, axis=0) for t in range(steps + 1)]).mean(axis=-1)
    pace = np.maximum((share > 0) * _alone(config, config.rows, together), 1 + (_texts(config).general - 1) * share)
    longer, found, begin = np.maximum(pace - 1, 0.0), list[float](), 0
    for planes in chunk_planes(nz, up, config):
        # the first planes of a chunk have the general text anyway
        chunk = longer.take(range(begin + steps - 2, begin + planes + steps), axis=0, mode="wrap").sum(axis=0)
        found += chunk.T.ravel().tolist()
        begin += planes
    return found


@lru_cache(maxsize=4)
def _beside_solids(name: str, geometry: str, domain: tuple[int, int, int]) -> Array:
    """Return the cells that are solid, or have a link that a solid cell cuts: bool, (nz, ny, nx)."""
    found = words(porous(name, "bgk", domain, 1.0, geometry), WORDS, np)
    return (found != 0).reshape(domain[::-1])


def _within(known: Array, starts: list[int], length: int) -> Array:
    """Return whether any of the last axis, a ring, is true in each piece of a length: bool, the last axis by starts."""
    first, last = min(starts), max(starts) + length
    counts = np.cumsum(known.take(range(first, last), axis=-1, mode="wrap"), axis=-1, dtype=np.int32)
    counts = np.concatenate((np.zeros_like(counts[..., :1]), counts), axis=-1)
    begins = np.array(starts) - first
    return counts[..., begins + length] > counts[..., begins]


def _corner(stencil: Lattice) -> float:
    """Return the instructions of a row at faces across both x and y, over those of a row at a face across y alone.

    Both execute what belongs to no link; of the rest, what belongs to links that are cut.
    """
    general = _OF_MOMENTS.general
    beside_one = sum(c[1] < 0 for c in stencil.velocities)
    beside_both = sum(min(c[:2]) < 0 for c in stencil.velocities)
    return (1 + (general - 1) * beside_both / beside_one) / general


def _taken(config: TemporalBlocking, planes: int, mixed: int, rows: int, corner: float, together: int) -> float:
    """Return the duration of a block in planes.

    mixed: planes in which all warps have the general text; rows: of a warp at a face across y; corner: factor of the
    general text there at a face across x; 0 in blocks without one.
    """
    texts = _texts(config)
    if not texts.by_rows and (rows or corner):
        rows = config.rows  # of each warp that has the text
    more = corner or 1.0
    pace = _pace(texts, texts.across_x if corner else 1.0, _alone(config, rows, together) * more)
    longest = max(pace, texts.general, _alone(config, config.rows, together) * more)
    return (planes - mixed) * pace + mixed * longest


def _pace(texts: _Texts, issued: float, alone: float) -> float:
    """Return the duration of a stage whose scheduler issues for a while, with a warp that takes longer alone.

    An instruction of that warp waits a slot if another warp has it, which is so for the share issued / t of the stage:
    t = alone + slots * issued / t, with the slots of the warp itself.
    """
    slots = alone / texts.alone
    return max(issued, alone / 2 + sqrt(alone**2 / 4 + slots * issued))


def _alone(config: TemporalBlocking, rows: int, together: int) -> float:
    """Return the duration of a stage of a warp with rows at faces, over that of warps without a cut link."""
    warps = max(1.0, together * config.block[1] / SCHEDULERS)
    texts = _texts(config)
    return texts.general * texts.alone * rows / (warps * config.rows)


def _rows_at_faces(case: Case, config: TemporalBlocking, block: int) -> int:
    """Return the most rows within the domain of a warp beside a face across y; 0 if the block has no such warp."""
    height = -(-case.domain[1] // config.blocks(case)[1])
    firsts = (block * height + warp * config.rows - config.steps for warp in range(config.block[1]))
    at_faces = (y for y in firsts if case.walled_across(1) and (y <= 0 or y + config.rows >= case.domain[1]))
    return max((sum(0 <= y + r < case.domain[1] for r in range(config.rows)) for y in at_faces), default=0)


def _mixed(case: Case, config: TemporalBlocking, *, first: bool, last: bool) -> int:
    """Return the planes of a chunk in which all warps have the general text."""
    steps = config.steps
    begin = 2 * steps + 1 if first and case.walled_across(2) else 2 * steps - 2
    return begin + (steps + 1 if last and case.walled_across(2) else 0)
