"""Tuning hints: the knobs that dominate each term of the model."""

from collections.abc import Mapping

from lbmtune.catalogue.config import KernelConfig, knobs_by_name
from lbmtune.records import Prediction
from lbmtune.records import terms as names

KNOBS_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cuda": {
        names.MEMORY: ("storage", "representation", "steps", "scheme"),
        names.RUNS: ("layout", "width", "pack"),
        names.SECTORS: ("cells_per_thread", "block", "layout"),
        names.SOLID: ("family", "order"),
        names.IN_PLACE: ("block", "cells_per_thread", "scheme"),
        names.INDEX_PREFETCH: ("prefetch_index",),
        names.LOCAL: ("register_limit", "rows", "cells_per_thread", "block", "addresses"),
        names.SPILL_HAZARDS: ("plane_fetch", "rows", "pack", "register_limit", "block"),
        names.THREADS: ("register_limit", "block", "cells_per_thread", "addresses"),
        names.WAVES: ("block", "z_cells", "sites_per_thread", "chunk_planes"),
        names.RINGS: ("block",),
        names.ISSUE: ("rows", "steps", "cells_per_thread", "z_buffer"),
        names.EXCHANGE: ("rows", "pack", "cells_per_thread"),
        names.WALLS: ("flags", "block", "steps"),
        names.STAGES: ("warp_sync", "register_limit", "block"),
        names.LATENCY: ("z_cells", "chunk_planes", "register_limit", "prefetch_cells", "plane_fetch"),
        names.L2_REFETCH: ("chunk_planes", "chunk_schedule", "z_cells", "block_order"),
        names.LAUNCH: ("launch", "steps"),
        names.GRID_SYNC: ("grid_sync", "block"),
        names.WALL_PASS: ("layout", "storage", "launch"),
    },
    "cpu": {
        names.MEMORY: ("storage", "family", "steps", "scheme"),
        names.ARITHMETIC: ("vector_bits", "compute", "steps"),
        names.REFILLS: ("padding", "row_padding", "stride", "layout"),
        names.CACHE: ("tile", "steps"),
        names.SHIFTED: ("row_offset", "row_tail", "collision_passes"),
        names.PREFETCH: ("prefetch_propagated", "prefetch_local", "prefetch_rows"),
        names.GROUPED: ("layout", "width"),
        names.WALL_PASS: ("layout", "storage", "threads"),
    },
}
"""Knobs by backend and term, the likeliest first."""


def worth_varying(prediction: Prediction, config: KernelConfig) -> tuple[str, tuple[str, ...]]:
    """Return the largest term that knobs of this kernel act on, and these knobs; empty if there is none."""
    flat = config.flat()
    for term in prediction.terms:
        known = KNOBS_OF[config.backend].get(term.name, ())
        mine = knobs_by_name(type(config))
        if acting := tuple(name for name in known if name in mine and mine[name].neutral(flat) is None):
            return term.name, acting
    return "", ()
