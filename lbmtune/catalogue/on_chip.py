"""Shared memory that a launch of a CUDA kernel asks for, whatever it is for."""

from __future__ import annotations

from lbmtune.catalogue.case import Case
from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.march import shared_bytes
from lbmtune.catalogue.tile_faces import tile_bytes
from lbmtune.catalogue.waiting import most_waiting_bytes


def asked_bytes(case: Case, config: CudaConfig) -> int:
    """Of a block, in bytes; where populations stay on chip see `catalogue.resident`."""
    if config.by_faces:
        return tile_bytes(case.stencil, config)
    return shared_bytes(case, config) if config.marches else most_waiting_bytes(case, config)
