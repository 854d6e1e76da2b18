"""What cut links take of a march of moments: warps at a face have longer texts, and the others of their block wait.

A warp at a face across x has a text of its own. One at another face has a text for anything, with a jump for each
question: nothing hides how long each of its instructions takes, since it computes its rows one after another. The first
planes of a chunk, which not all stages take, have that text, too. So blocks take unequally long.
"""

from __future__ import annotations

from functools import lru_cache
from heapq import heapreplace

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import blocks, chunk_planes, spared
from lbmtune.catalogue.rules.limits import SCHEDULERS
from lbmtune.lattice import Lattice

_ACROSS_X, _ANYTHING = 1.22, 1.71
"""Instructions of the texts for faces across x and for anything, over those of a text without a cut link; medians of 89
kernels compiled for compute capability 9.0."""
_ALONE = 2.2 + 12 * 11 / 235
"""Cycles that an instruction of the text for anything takes a warp, whatever others do: what those kernels say by their
stall counts, and 12 jumps in 235 instructions, of which each takes 11 cycles by a loop of a single warp."""


def evenness(case: Case, config: CudaConfig, multiprocessors: int, together: int) -> float:
    """Share of the device's time that would be enough if no link were cut and no multiprocessor without a block.

    Blocks begin in order, each where one has ended.
    """
    taken = _blocks(case, config, together)
    ends = [0.0] * min(multiprocessors * together, len(taken))
    for one in taken:
        heapreplace(ends, ends[0] + one)
    x, y, _ = blocks(case, config)
    return x * y * sum(_planes(case, config)) / (multiprocessors * together) / max(ends)


def _planes(case: Case, config: CudaConfig) -> list[int]:
    """Planes that the blocks of a column go through."""
    besides = 2 * config.steps - spared(case, config)
    return [planes + besides for planes in chunk_planes(case.domain[2], blocks(case, config)[2], config)]


@lru_cache(maxsize=1024)
def _blocks(case: Case, config: CudaConfig, together: int) -> tuple[float, ...]:
    """What all blocks take, in planes of blocks without a cut link, in the order in which they begin."""
    across, along, up = blocks(case, config)
    rows = [_rows_at_faces(case, config, y) for y in range(along)]
    corner = _corner(case.stencil)
    found: list[float] = []
    for z, planes in enumerate(_planes(case, config)):
        mixed = _mixed(case, config, first=z == 0, last=z == up - 1)
        inside = {n: _taken(config, planes, mixed, n, 1.0, together) for n in {*rows}}
        beside = {n: _taken(config, planes, mixed, n, corner, together) for n in {*rows}}
        for n in rows:
            found += [inside[n]] * across
            if _walled(case, 0):
                found[-across] = found[-1] = beside[n]
    return tuple(found)


def _corner(stencil: Lattice) -> float:
    """Instructions of a row where a face across x meets one across y, over one beside the latter alone.

    Both go through what is not of a link; of the rest, through what belongs to links that are cut.
    """
    beside_one = sum(c[1] < 0 for c in stencil.velocities)
    beside_both = sum(min(c[:2]) < 0 for c in stencil.velocities)
    return (1 + (_ANYTHING - 1) * beside_both / beside_one) / _ANYTHING


def _taken(config: CudaConfig, planes: int, mixed: int, rows: int, corner: float, together: int) -> float:
    """Of a block: planes in all, those in which all links are asked for, rows of a warp at a face across y.

    corner: what the text for anything takes more there, 1 in blocks without a face across x.
    """
    pace = max(_ACROSS_X if corner > 1 else 1.0, _alone(config, rows, together) * corner)
    longest = max(pace, _ANYTHING, _alone(config, config.rows, together) * corner)
    return (planes - mixed) * pace + mixed * longest


def _walled(case: Case, axis: int) -> bool:
    return case.faces[2 * axis] != "periodic"


def _alone(config: CudaConfig, rows: int, together: int) -> float:
    """A stage of a warp that computes so many rows at faces, over one of a scheduler's warps without a cut link."""
    warps = max(1.0, together * config.block[1] / SCHEDULERS)
    return _ANYTHING * _ALONE * rows / (warps * config.rows)


def _rows_at_faces(case: Case, config: CudaConfig, block: int) -> int:
    """The most rows within the domain of a warp that has one beside a face across y; 0: no warp of the block has."""
    height = -(-case.domain[1] // blocks(case, config)[1])
    firsts = (block * height + warp * config.rows - config.steps for warp in range(config.block[1]))
    at_faces = (y for y in firsts if _walled(case, 1) and (y <= 0 or y + config.rows >= case.domain[1]))
    return max((sum(0 <= y + r < case.domain[1] for r in range(config.rows)) for y in at_faces), default=0)


def _mixed(case: Case, config: CudaConfig, *, first: bool, last: bool) -> int:
    """Planes of a chunk in which all warps have the text for anything."""
    steps = config.steps
    begin = 2 * steps + 1 if first and _walled(case, 2) else 2 * steps - 2
    return begin + (steps + 1 if last and _walled(case, 2) else 0)
