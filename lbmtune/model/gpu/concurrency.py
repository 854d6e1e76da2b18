"""Which share of the bandwidth is in use: threads in flight, and the last wave of blocks."""

from __future__ import annotations

from math import prod

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.temporal_blocking import SECTOR_BYTES
from lbmtune.catalogue.footprint import traffic
from lbmtune.model.gpu.inputs import Subject, between, launched_blocks
from lbmtune.model.gpu.solid_cells import lanes, touched
from lbmtune.model.machine.figures import numbered

_BATCHES = {False: (15, 4), True: (3, 12, 4)}
"""Loads of a column of vectors between two branches, where values are converted or not; as compiled for sm_90."""


def in_flight(subject: Subject, share: float = 1.0) -> float:
    """Share of the bandwidth that the loads in flight make use of: Little's law, as measured.

    share: of the multiprocessors that are at work.
    Source: Volkov 2016; `Calibration.threads_bytes_per_s`, for 19 loads of each thread.
    """
    access = subject.access_bytes
    measured = subject.calibration.threads_bytes_per_s
    curve = sorted((count, measured[name]) for count, name in numbered(tuple(measured), f"{access} by ").items())
    config = subject.config
    loads = config.kept.values(subject.case.stencil) * config.rows / subject.machine.streams * _at_once(config)
    threads = subject.blocks * prod(config.block)
    return between(curve, share * threads * loads * _of_fluid(subject)) / max(rate for _, rate in curve)


def _of_fluid(subject: Subject) -> float:
    """Share of its loads that a warp waits for where solid cells load nothing, as the mean over its time.

    It waits for flags first, and then for all that they say there is to load, so that it waits twice; but where no cell
    of its block is fluid, it ends at once and another block takes the place of its own. Reasoned: each wait is taken to
    be as long as the other.
    """
    case, config = subject.case, subject.config
    if config.indirect or config.marches or not case.geometry:
        return 1.0
    whole = traffic(case, config).populations / (2 * SECTOR_BYTES)
    return touched(case, config).loaded * case.fluid_sites / case.sites / whole / (1 + lanes(case, config).blocks)


def _at_once(config: CudaConfig) -> float:
    """Share of its loads that a thread waits for at once.

    In a column warps may have lost threads, so that shuffles branch; loads after a branch wait for those before it.
    """
    if config.march == 1 or config.marches or config.indirect or config.cells_per_thread == 1 or config.prefetch:
        return 1.0
    batches = _BATCHES[config.stored.bytes < config.computed.bytes]
    return sum(n * n for n in batches) / sum(batches) ** 2


def waves(subject: Subject) -> float:
    """Share of the bandwidth that is left where the last wave of blocks does not fill the device.

    What is left of them has more bandwidth each, as long as their loads in flight make use of it.
    """
    blocks = launched_blocks(subject)
    at_once = subject.machine.multiprocessors * subject.blocks
    full, rest = blocks // at_once, blocks % at_once / at_once
    last = min(1.0, rest * max(1.0, in_flight(subject) / in_flight(subject, rest))) if rest else 0.0
    return (full + rest) / (full + last)
