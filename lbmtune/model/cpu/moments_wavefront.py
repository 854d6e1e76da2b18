"""Several steps of moments on a CPU: the populations of each step pass through rings of rows in a cache."""

from functools import lru_cache
from math import ceil

from lbmtune.catalogue.families.cpu.moments_wavefront import MomentsWavefront, computed, thread_values
from lbmtune.codegen.cpu.moments_wavefront.cell import cell_text
from lbmtune.model.cpu.inputs import Family
from lbmtune.model.cpu.wavefront import WavefrontInputs, terms
from lbmtune.model.machine.memory_walks import TRANSFERS


class MomentsWavefrontInputs(WavefrontInputs):
    """A kernel of a wavefront of moments."""

    config: MomentsWavefront  # type: ignore[assignment]  # all of them ask it for what both records have

    has_streams = False

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of a population between two steps of a launch."""
        return self.config.computed.bytes

    @property
    def threads(self) -> float:
        """Return the threads at work, as the mean over a launch whose blocks do not divide evenly."""
        shares = self.config.shares(self.case)
        return shares / ceil(shares / self.config.threads)

    @property
    def repeated(self) -> float:
        """Return the computed steps per step of a cell, halos included."""
        return computed(self.case, self.config)

    @property
    def kept_bytes(self) -> int:
        """Return the bytes that a thread goes through from one step of a row to the next."""
        return thread_values(self.case, self.config) * self.waiting_bytes

    @property
    def cached_bytes(self) -> float:
        """Return the bytes per update that move within a cache: stores of populations in each step allocate lines."""
        steps = self.config.steps
        transfers = self.repeated * TRANSFERS["copy"] * self.case.stencil.q * self.waiting_bytes
        return transfers * steps / steps

    @property
    def text(self) -> str:
        """Return the assignments of an update of a cell."""
        return _text(self.case)


_text = lru_cache(maxsize=64)(cell_text)

MODEL = Family(MomentsWavefrontInputs, terms)
