"""The share of the bandwidth in use: threads in flight, and the last wave of blocks."""

from collections.abc import Callable, Collection, Mapping

from lbmtune.catalogue.footprint import traffic
from lbmtune.catalogue.limits import SECTOR_BYTES
from lbmtune.model.gpu.inputs import Inputs
from lbmtune.model.gpu.terms.solid_cells import lanes, touched
from lbmtune.model.machine.curves import by_number, interpolated
from lbmtune.records.terms import THREADS, WAVES


def rate_in_use(inputs: Inputs, rate: float, without: Collection[str]) -> float:
    """Return what remains of a bandwidth at the shares in use, but for terms to leave out."""
    for name, share in SHARES.items():
        if name not in without:
            rate *= share(inputs)
    return rate


def in_flight(inputs: Inputs, share: float = 1.0) -> float:
    """Return the share of the bandwidth that the loads in flight use, by Little's law.

    share: of the multiprocessors that are at work.
    Source: Volkov 2016; `Calibration.threads_bytes_per_s`, for 19 loads of each thread.
    """
    access = inputs.access_bytes
    measured = inputs.calibration.threads_bytes_per_s
    curve = sorted((count, measured[name]) for count, name in by_number(tuple(measured), f"{access} by ").items())
    values = inputs.config.kept.values(inputs.case.stencil)
    loads = values * inputs.rows / inputs.machine.streams * inputs.loads_at_once
    threads = inputs.blocks * inputs.block_threads
    return interpolated(curve, share * threads * loads * _of_fluid(inputs)) / max(rate for _, rate in curve)


def _of_fluid(inputs: Inputs) -> float:
    """Return the share of its loads that a warp waits for if solid cells load nothing, as the mean over its time.

    A warp waits for flags first, and then for the loads that they leave. A block without fluid cells ends at once, and
    another one takes its place. Reasoned: both waits are taken to be equally long.
    """
    if not inputs.skips_solid_cells:
        return 1.0
    case, config = inputs.case, inputs.config
    whole = traffic(case, config).populations / (2 * SECTOR_BYTES)
    return touched(case, config).loaded * case.fluid_sites / case.sites / whole / (1 + lanes(case, config).blocks)


def waves(inputs: Inputs) -> float:
    """Return the share of the bandwidth that remains if the last wave of blocks does not fill the device.

    The blocks of that wave have more bandwidth each, as far as their loads in flight can use it.
    """
    blocks = inputs.launched_blocks
    at_once = inputs.machine.multiprocessors * inputs.blocks
    full, rest = blocks // at_once, blocks % at_once / at_once
    last = min(1.0, rest * max(1.0, in_flight(inputs) / in_flight(inputs, rest))) if rest else 0.0
    return (full + rest) / (full + last)


SHARES: Mapping[str, Callable[[Inputs], float]] = {THREADS: in_flight, WAVES: waves}
"""Shares of the bandwidth in use, by term."""
