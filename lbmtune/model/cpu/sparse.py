"""Fluid sites and an index list on a CPU."""

from __future__ import annotations

from typing import Any

from lbmtune.model.cpu.direct import terms
from lbmtune.model.cpu.inputs import CpuInputs, Family, collision_text


class SparseInputs(CpuInputs):
    """A kernel of fluid sites: no streams side by side, no prefetches of populations, ordinary stores."""

    grouped = False
    has_streams = False
    prefetched_in_cache = 0.0

    @staticmethod
    def streams(_config: Any) -> bool:
        """Return False: listed sites have ordinary stores."""
        return False

    @property
    def text(self) -> str:
        """The assignments of an update of a site."""
        return collision_text(self.case, "one")


MODEL = Family(SparseInputs, terms)
