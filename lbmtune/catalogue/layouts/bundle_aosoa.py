"""Vectorised bundles: as bundles, with a run of W cells along x in the place of every single value.

Source: Robertsen 2018, section 3.4.1 and figure 3.8; W is 16 on GPUs there, 8, 64 and 256 on CPUs.
"""

from __future__ import annotations

from lbmtune.catalogue.layouts.bundle import Bundle
from lbmtune.catalogue.layouts.layout import LayoutParameters


def build(parameters: LayoutParameters) -> Bundle:
    """Bundles of runs of `width` cells."""
    return Bundle(parameters.group, parameters.width, "bundle-aosoa")
