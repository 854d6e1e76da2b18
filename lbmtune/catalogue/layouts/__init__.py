"""The memory layouts: one file each, by name; a layout's own knobs are the fields of its class."""

from collections.abc import Mapping

from lbmtune.catalogue.layouts.aos import AoS
from lbmtune.catalogue.layouts.aosoa import AoSoA
from lbmtune.catalogue.layouts.bundle import Bundle
from lbmtune.catalogue.layouts.bundle_aosoa import BundleAoSoA
from lbmtune.catalogue.layouts.layout import Layout
from lbmtune.catalogue.layouts.rows import Rows
from lbmtune.catalogue.layouts.soa import SoA
from lbmtune.catalogue.layouts.tiled import Tiled
from lbmtune.catalogue.layouts.tiled_cells import TiledCells

LAYOUTS: Mapping[str, type[Layout]] = {
    layout.name: layout for layout in (SoA, AoS, AoSoA, Rows, Bundle, BundleAoSoA, Tiled, TiledCells)
}
