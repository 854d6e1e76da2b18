"""Threads of a CPU kernel that have no work, and what would give them some."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import cast

from lbmtune.catalogue.backends import BACKENDS
from lbmtune.catalogue.config import CpuConfig, KernelConfig, from_flat
from lbmtune.catalogue.families.rules import Limits, broken
from lbmtune.catalogue.limits import extents
from lbmtune.catalogue.problem.case import Case
from lbmtune.errors import InputError


def idle_threads(case: Case, config: KernelConfig) -> str:
    """Return a remark if a launch has fewer parts to share than threads, else ''. What it advises is legal."""
    if not BACKENDS[config.backend].shares_host:
        return ""
    config = cast("CpuConfig", config)
    busy = config.busy_threads(case)
    if busy == config.threads:
        return ""
    one = busy == 1
    return (
        f"{busy} of {config.threads} threads {'has' if one else 'have'} work: the parallel loop has {busy} "
        f"{'iteration' if one else 'iterations'} on {extents(case.domain)}; {_advice(case, config, busy)}."
    )


def _advice(case: Case, config: CpuConfig, busy: int) -> str:
    """Return a way to divide the domain further, or else fewer threads and a larger domain."""
    best, advice = busy, ""
    for knob, value, what in _finer(config):
        other = _with(config, knob, value)
        if other.busy_threads(case) > best and _is_legal(case, other):
            best, advice = other.busy_threads(case), f"{knob}={value} {what}"
        if best == config.threads:
            return advice
    if advice:
        return f"{advice}, for {best} threads"
    larger = _larger(case, config)
    return f"use threads={busy}{f', or a larger domain such as case.domain={extents(larger)}' if larger else ''}"


def _finer(config: CpuConfig) -> Iterator[tuple[str, str, str]]:
    """Yield knobs with values that divide a domain further, the coarsest first, and what they do."""
    loop = getattr(config, "parallel_loop", "")
    if loop == "z":
        yield "parallel_loop", "zy", "divides rows"
    tiled = loop.startswith("tile-")
    if tiled or hasattr(config, "tile"):
        knob, before = ("parallel_loop", "tile-") if tiled else ("tile", "")
        of = (config.tile_y, config.tile_z) if tiled else getattr(config, "tile", ())
        for tile in _smaller(of):
            yield knob, f"{before}{extents(tile)}", "has smaller tiles"
    for steps in range(config.fused_steps - 1, 1, -1):
        yield "steps", str(steps), "has thinner slabs"


def _smaller(tile: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the tiles whose edges are halved any number of times, the largest first; of one size the longest along y.

    A row is divided last: it is a run of memory.
    """
    edges = [[edge >> times for times in range(edge.bit_length())] for edge in tile]
    return sorted(product(*edges), key=lambda one: (prod(one), one), reverse=True)[1:]


def _larger(case: Case, config: CpuConfig) -> tuple[int, int, int] | None:
    """Return a multiple of the domain, along each axis with several cells, that gives each thread work, or None."""
    for times in (2, 3, 4, 6, 8, 12, 16):
        x, y, z = (times * n if n > 1 else n for n in case.domain)
        try:
            larger = replace(case, domain=(x, y, z))
        except InputError:  # a voxel file has one domain
            return None
        if config.busy_threads(larger) == config.threads and _is_legal(larger, config):
            return x, y, z
    return None


def _is_legal(case: Case, config: CpuConfig) -> bool:
    """Return whether the rules allow a configuration on a processor that has its threads."""
    return broken(case, config.printed, Limits(cores=config.threads)) is None


def _with(config: CpuConfig, knob: str, value: str) -> CpuConfig:
    return cast("CpuConfig", from_flat({**config.flat(), knob: value}))
