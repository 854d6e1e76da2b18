"""Array of structures of arrays: groups of W cells along x, in each group one run of W per direction."""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.layout import Layout


@dataclass(frozen=True)
class AoSoA(Layout):
    """index = ((z * ny + y) * nx + W * (x / W)) * Q + q * W + x % W; the row length must be a multiple of W."""

    name: ClassVar[str] = "aosoa"

    width: int = knob(32, "cells along x of a group", unit="cells", search=(16, 32, 64, 128), least=2)

    @property
    def run(self) -> int:
        """Return the adjacent cells of one component: W."""
        return self.width
