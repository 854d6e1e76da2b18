"""Array of structures: the q populations of a cell are adjacent."""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.layouts.layout import Layout


@dataclass(frozen=True)
class AoS(Layout):
    """index = ((z * ny + y) * nx + x) * Q + q."""

    name: ClassVar[str] = "aos"
    run: ClassVar[int] = 1
