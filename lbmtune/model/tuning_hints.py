"""Which axes a term depends on most: where somebody would look for what a kernel loses."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.config import KernelConfig, knobs_by_name
from lbmtune.model.cpu import terms as cpu
from lbmtune.model.gpu.inputs import (
    AGAIN,
    AHEAD,
    IN_PLACE,
    ISSUE,
    LATENCY,
    LAUNCH,
    LOCAL,
    MEETING,
    OVERTAKEN,
    RINGS,
    RUNS,
    SECTORS,
    SOLID,
    STAGES,
    THREADS,
    WALLS,
    WAVES,
)
from lbmtune.model.gpu.temporal_blocking import EXCHANGE, MEMORY
from lbmtune.records import Prediction

_BYTES = ("storage", "representation", "steps", "scheme")
AXES_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cuda": {
        MEMORY: _BYTES,
        RUNS: ("layout", "width", "pack"),
        SECTORS: ("cells_per_thread", "block", "layout"),
        SOLID: ("family", "order"),
        IN_PLACE: ("block", "cells_per_thread", "scheme"),
        AHEAD: ("prefetch_index",),
        LOCAL: ("register_limit", "rows", "cells_per_thread", "block"),
        OVERTAKEN: ("plane_fetch", "rows", "pack", "register_limit", "block"),
        THREADS: ("register_limit", "block", "cells_per_thread"),
        WAVES: ("block", "z_cells", "sites_per_thread", "chunk_planes"),
        RINGS: ("block",),
        ISSUE: ("rows", "steps", "cells_per_thread", "z_buffer"),
        EXCHANGE: ("rows", "pack", "cells_per_thread"),
        WALLS: ("flags", "block", "steps"),
        STAGES: ("warp_sync", "register_limit", "block"),
        LATENCY: ("z_cells", "chunk_planes", "register_limit", "prefetch_cells", "plane_fetch"),
        AGAIN: ("chunk_planes", "chunk_schedule", "z_cells", "block_order"),
        LAUNCH: ("launch", "steps"),
        MEETING: ("grid_sync", "block"),
    },
    "cpu": {
        cpu.MEMORY: _BYTES,
        cpu.ARITHMETIC: ("vector_bits", "compute", "steps"),
        cpu.REFILLS: ("padding", "row_padding", "stride", "layout"),
        cpu.CACHE: ("tile", "steps"),
        cpu.SHIFTED: ("row_offset", "row_tail", "collision_passes"),
        cpu.AHEAD: ("prefetch_propagated", "prefetch_local", "prefetch_rows"),
        cpu.GROUPED: ("layout", "width"),
    },
}
"""By backend and term, the likeliest first; of each term of the model."""


def worth_varying(prediction: Prediction, config: KernelConfig) -> tuple[str, tuple[str, ...]]:
    """The largest term that axes of this kernel act on, and these axes; nothing where there is none."""
    flat = config.flat()
    for term in prediction.terms:
        known = AXES_OF[config.backend].get(term.name, ())
        mine = knobs_by_name(type(config))
        if acting := tuple(name for name in known if name in mine and mine[name].neutral(flat) is None):
            return term.name, acting
    return "", ()
