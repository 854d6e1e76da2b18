"""The geometries by name, one class each; its fields are the parameters."""

from collections.abc import Mapping

from lbmtune.catalogue.problem.geometries.shape import Geometry
from lbmtune.lazy import modules_with

GENERATORS: Mapping[str, type[Geometry]] = {
    module.GEOMETRY.name: module.GEOMETRY for module in modules_with("GEOMETRY", __name__, __path__)
}
"""The `GEOMETRY` of each file of this folder, by name."""
