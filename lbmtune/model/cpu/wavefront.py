"""Several steps in place on a CPU: rows of a tile follow one another from step to step, in a cache."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lbmtune.catalogue.families.cpu.wavefront import Wavefront, slabs
from lbmtune.model.cpu import direct
from lbmtune.model.cpu.arithmetic import arithmetic
from lbmtune.model.cpu.cache import cache
from lbmtune.model.cpu.family import Family
from lbmtune.model.cpu.inputs import CpuInputs
from lbmtune.model.machine.memory_walks import TRANSFERS
from lbmtune.records import Term
from lbmtune.records.terms import ARITHMETIC, CACHE


class WavefrontInputs(CpuInputs):
    """A kernel of a wavefront."""

    config: Wavefront

    @staticmethod
    def streams(_config: Any) -> bool:
        """Return False: stores stay in the cache."""
        return False

    @property
    def threads(self) -> float:
        """Threads at work: one for each slab."""
        return slabs(self.case, self.config)

    @property
    def prefetched(self) -> float:
        """Share of the streams whose lines in memory are prefetched: all, if steps prefetch rows."""
        return 1.0 if self.config.prefetch_rows else self.prefetched_in_cache

    @property
    def kept_bytes(self) -> int:
        """Bytes that a thread goes through from one step of a row to the next."""
        config, extents = self.config, self.config.stored_extents(self.case)
        rows = config.tile_y * (config.tile_z + config.steps)
        return rows * int(extents.x) * self.case.stencil.q * config.stored.bytes

    @property
    def cached_bytes(self) -> float:
        """Bytes per update that move within a cache; the first read and the last write are those of memory."""
        steps = self.config.steps
        transfers = self.repeated * TRANSFERS["in place"] * self.case.stencil.q * self.waiting_bytes
        return transfers * (steps - 1) / steps


def terms(inputs: WavefrontInputs, without: Collection[str] = ()) -> list[Term]:
    """Return the terms of one step, and that of the cache."""
    found = direct.terms(inputs, without)
    if CACHE not in without:
        computed_s = 0.0 if ARITHMETIC in without else arithmetic(inputs).seconds
        found.append(cache(inputs, inputs.cached_bytes, inputs.kept_bytes, computed_s))
    return found


MODEL = Family(WavefrontInputs, terms)
