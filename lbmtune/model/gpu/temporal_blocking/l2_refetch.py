"""Planes around the chunk of a block that memory moves again because L2 no longer holds them."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.families.cuda.temporal_blocking import TemporalBlocking, blocks, passed_planes
from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.problem.case import Case
from lbmtune.model.machine.caches import retained_in_l2
from lbmtune.model.machine.description import Machine


def memory_bytes(case: Case, config: TemporalBlocking, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update that memory moves. at_once: concurrent blocks; 0: one per multiprocessor."""
    return traffic(case, config).total + refetched_plane_bytes(case, config, machine, at_once)


def refetched_plane_bytes(case: Case, config: TemporalBlocking, machine: Machine, at_once: int = 0) -> float:
    """Return the bytes per update of the planes before and after each chunk, which belong to other blocks.

    When the next block of a column begins with them, all that the device moves meanwhile has gone through the cache.
    """
    found, flat = blocks(case, config), case.stencil.dimensions == 2
    height, chunks = (case.domain[1], found[1]) if flat else (case.domain[2], found[2])
    passed = passed_planes(case, config)
    taken = chunks * passed[0] if config.chunk_schedule == "uniform" else sum(passed)
    moved = traffic(case, config)
    launch_bytes = moved.total * config.steps * case.sites
    between = launch_bytes * min(1.0, (at_once or machine.multiprocessors) / prod(found))
    return moved.populations / 2 * (taken / height - 1) * (1 - retained_in_l2(machine, between))
