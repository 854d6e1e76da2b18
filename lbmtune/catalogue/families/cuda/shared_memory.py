"""Shared memory that a launch of a CUDA kernel asks for, whatever it is for."""

from __future__ import annotations

from lbmtune.catalogue.config import CudaConfig
from lbmtune.catalogue.families.cuda.face_exchange import tile_bytes
from lbmtune.catalogue.families.cuda.prefetch_buffers import most_waiting_bytes
from lbmtune.catalogue.families.cuda.temporal_blocking import shared_bytes
from lbmtune.catalogue.problem.case import Case


def asked_bytes(case: Case, config: CudaConfig) -> int:
    """Of a block, in bytes; where populations stay on chip see `catalogue.families.cuda.persistent`."""
    if config.by_faces:
        return tile_bytes(case.stencil, config)
    return shared_bytes(case, config) if config.marches else most_waiting_bytes(case, config)
