"""Tuning hints: the knobs that dominate each term of the model."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.config import KernelConfig, knobs_by_name
from lbmtune.records import Prediction
from lbmtune.records.terms import (
    ARITHMETIC,
    CACHE,
    EXCHANGE,
    GRID_SYNC,
    GROUPED,
    IN_PLACE,
    INDEX_PREFETCH,
    ISSUE,
    L2_REFETCH,
    LATENCY,
    LAUNCH,
    LOCAL,
    MEMORY,
    PREFETCH,
    REFILLS,
    RINGS,
    RUNS,
    SECTORS,
    SHIFTED,
    SOLID,
    SPILL_HAZARDS,
    STAGES,
    THREADS,
    WALLS,
    WAVES,
)

AXES_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cuda": {
        MEMORY: ("storage", "representation", "steps", "scheme"),
        RUNS: ("layout", "width", "pack"),
        SECTORS: ("cells_per_thread", "block", "layout"),
        SOLID: ("family", "order"),
        IN_PLACE: ("block", "cells_per_thread", "scheme"),
        INDEX_PREFETCH: ("prefetch_index",),
        LOCAL: ("register_limit", "rows", "cells_per_thread", "block"),
        SPILL_HAZARDS: ("plane_fetch", "rows", "pack", "register_limit", "block"),
        THREADS: ("register_limit", "block", "cells_per_thread"),
        WAVES: ("block", "z_cells", "sites_per_thread", "chunk_planes"),
        RINGS: ("block",),
        ISSUE: ("rows", "steps", "cells_per_thread", "z_buffer"),
        EXCHANGE: ("rows", "pack", "cells_per_thread"),
        WALLS: ("flags", "block", "steps"),
        STAGES: ("warp_sync", "register_limit", "block"),
        LATENCY: ("z_cells", "chunk_planes", "register_limit", "prefetch_cells", "plane_fetch"),
        L2_REFETCH: ("chunk_planes", "chunk_schedule", "z_cells", "block_order"),
        LAUNCH: ("launch", "steps"),
        GRID_SYNC: ("grid_sync", "block"),
    },
    "cpu": {
        MEMORY: ("storage", "family", "steps", "scheme"),
        ARITHMETIC: ("vector_bits", "compute", "steps"),
        REFILLS: ("padding", "row_padding", "stride", "layout"),
        CACHE: ("tile", "steps"),
        SHIFTED: ("row_offset", "row_tail", "collision_passes"),
        PREFETCH: ("prefetch_propagated", "prefetch_local", "prefetch_rows"),
        GROUPED: ("layout", "width"),
    },
}
"""Knobs by backend and term, the likeliest first."""


def worth_varying(prediction: Prediction, config: KernelConfig) -> tuple[str, tuple[str, ...]]:
    """Return the largest term that knobs of this kernel act on, and these knobs; empty if there is none."""
    flat = config.flat()
    for term in prediction.terms:
        known = AXES_OF[config.backend].get(term.name, ())
        mine = knobs_by_name(type(config))
        if acting := tuple(name for name in known if name in mine and mine[name].neutral(flat) is None):
            return term.name, acting
    return "", ()
