"""The geometries by name, one class each; its fields are the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbmtune.catalogue.problem.geometries import blocks, ducts, packing, sandstone, sphere, voxelfile

GENERATORS: Mapping[str, Any] = {
    "sphere": sphere.Sphere,
    "packing": packing.Packing,
    "sandstone": sandstone.Sandstone,
    "blocks": blocks.Blocks,
    "ducts": ducts.Ducts,
    "file": voxelfile.VoxelFile,
}
