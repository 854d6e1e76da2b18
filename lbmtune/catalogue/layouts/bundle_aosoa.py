"""Vectorised bundles: each value of a bundle is a run of W cells along x.

Source: Robertsen 2018, section 3.4.1 and figure 3.8; W is 16 on GPUs there, 8, 64 and 256 on CPUs.
"""

from dataclasses import dataclass
from typing import ClassVar

from lbmtune.catalogue.knobs import knob
from lbmtune.catalogue.layouts.bundle import Bundle


@dataclass(frozen=True)
class BundleAoSoA(Bundle):
    """The index of `Bundle` with W > 1."""

    name: ClassVar[str] = "bundle-aosoa"

    width: int = knob(32, "cells along x of a group", unit="cells", search=(16, 32, 64, 128), least=2)
