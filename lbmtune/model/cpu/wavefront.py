"""Several steps in place on a CPU: rows of a tile follow one another from step to step, in a cache."""

from collections.abc import Collection

from lbmtune.catalogue.families.cpu.wavefront import Wavefront
from lbmtune.model.cpu import direct
from lbmtune.model.cpu.arithmetic import arithmetic
from lbmtune.model.cpu.inputs import CpuInputs, Family
from lbmtune.model.cpu.memory import measured_walk
from lbmtune.model.machine.curves import closest, enclosed
from lbmtune.model.machine.memory_walks import TRANSFERS, Walk, fillings
from lbmtune.model.roofline import CALIBRATED
from lbmtune.records import Term
from lbmtune.records.terms import ARITHMETIC, CACHE
from lbmtune.units import format_rate


class WavefrontInputs(CpuInputs):
    """A kernel of a wavefront."""

    config: Wavefront

    @property
    def kept_bytes(self) -> int:
        """Return the bytes that a thread goes through from one step of a row to the next."""
        config, extents = self.config, self.config.stored_extents(self.case)
        rows = config.tile_y * (config.tile_z + config.steps)
        return rows * int(extents.x) * self.case.stencil.q * config.stored.bytes

    @property
    def cached_bytes(self) -> float:
        """Return the bytes per update that move within a cache; the first read and the last write concern memory."""
        steps = self.config.steps
        transfers = self.repeated * TRANSFERS["in place"] * self.case.stencil.q * self.waiting_bytes
        return transfers * (steps - 1) / steps


def terms(inputs: WavefrontInputs, without: Collection[str] = ()) -> list[Term]:
    """Return the terms of one step, and that of the cache."""
    found = direct.terms(inputs, without)
    if CACHE not in without:
        computed_s = 0.0 if ARITHMETIC in without else arithmetic(inputs).seconds
        found.append(_cache(inputs, inputs.cached_bytes, inputs.kept_bytes, computed_s))
    return found


def _cache(inputs: CpuInputs, moved: float, kept_bytes: int, arithmetic_s: float) -> Term:
    """Return the time of the steps of a launch in a cache, beyond the arithmetic that hides it.

    moved: bytes per update; kept_bytes: bytes that a thread goes through from one step of a row to the next.
    """
    stays = kept_bytes <= inputs.machine.caches_bytes.get("L2", 0)
    within = _rate(inputs, kept_bytes, stays=stays) * inputs.threads / inputs.machine.environment.cores
    which = "the L2 cache" if stays else "the last-level cache"
    sentence = f"{moved:.4g} bytes per update within {which} at {format_rate(within)}, while it computes"
    hidden_s = _hidden(inputs) * min(moved / within, arithmetic_s)
    return Term(CACHE, moved / within - hidden_s, sentence, CALIBRATED)


def _hidden(inputs: CpuInputs) -> float:
    """Return the share that overlaps of the shorter of cache and arithmetic; 1 without a measurement."""
    shares, access = inputs.calibration.cached_hidden, inputs.config.lanes * inputs.waiting_bytes
    names = {width: Walk("in place", width).name for width in inputs.widths}
    measured = {width: shares[name] for width, name in names.items() if name in shares}
    return measured[closest(measured, access)] if measured else 1.0


def _rate(inputs: CpuInputs, kept_bytes: int, *, stays: bool) -> float:
    """Return bytes per second of all cores within L2, or within the last cache if that was measured."""
    found = inputs.calibration
    width = closest(map(int, found.cached_bytes_per_s), inputs.config.lanes * inputs.waiting_bytes)
    one, rates = Walk("in place", width), found.last_cached_bytes_per_s
    if stays or one.name not in rates:
        return found.cached_bytes_per_s[str(width)]
    share = inputs.prefetched_in_cache
    ways = (measured_walk(one._replace(ahead=True), rates), share), (one, 1 - share)
    return 1 / sum(part / _last_cache_rate(inputs, kept_bytes, way) for way, part in ways if part)


def _last_cache_rate(inputs: CpuInputs, kept_bytes: int, one: Walk) -> float:
    """Return bytes per second of a walk through as much of the last cache as the kernel goes through.

    Interpolated by the time of a byte. Beyond what was measured the cache holds as many bytes, and memory the rest.
    """
    found, last_bytes = inputs.calibration, inputs.machine.caches_bytes.get("L3", 0)
    inside, rates = found.last_cached_bytes_per_s[one.name], found.filled_bytes_per_s
    points = [(filling.share, 1 / rates[filling.name]) for filling in fillings(one) if filling.name in rates]
    if not points or not last_bytes:
        return inside
    share, (most, most_s) = kept_bytes * inputs.threads / last_bytes, points[-1]
    if share <= most:
        return 1 / enclosed([(0.0, 1 / inside), *points], share)
    kept = most / share
    return 1 / (kept * most_s + (1 - kept) / found.walks_bytes_per_s[one.name])


MODEL = Family(WavefrontInputs, terms)
