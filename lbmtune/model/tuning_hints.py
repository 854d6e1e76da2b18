"""Tuning hints: the knobs that dominate each term of the model."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.axes import neutral
from lbmtune.catalogue.config import KernelConfig
from lbmtune.records import Prediction
from lbmtune.records.terms import (
    AGAIN,
    AHEAD,
    ARITHMETIC,
    CACHE,
    EXCHANGE,
    GROUPED,
    IN_PLACE,
    ISSUE,
    LATENCY,
    LAUNCH,
    LOCAL,
    MEETING,
    MEMORY,
    OVERTAKEN,
    PREFETCH,
    REFILLS,
    RINGS,
    RUNS,
    SECTORS,
    SHIFTED,
    SOLID,
    STAGES,
    THREADS,
    WALLS,
    WAVES,
)

_BYTES = ("storage", "representation", "steps", "scheme")
AXES_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cuda": {
        MEMORY: _BYTES,
        RUNS: ("layout", "width", "pack"),
        SECTORS: ("cells_per_thread", "block", "layout"),
        SOLID: ("addressing", "order"),
        IN_PLACE: ("block", "cells_per_thread", "scheme"),
        AHEAD: ("prefetch_index",),
        LOCAL: ("max_registers", "min_blocks", "rows", "cells_per_thread", "block"),
        OVERTAKEN: ("prefetch", "rows", "pack", "min_blocks", "block"),
        THREADS: ("min_blocks", "block", "cells_per_thread", "max_registers"),
        WAVES: ("block", "march"),
        RINGS: ("block",),
        ISSUE: ("rows", "steps", "cells_per_thread", "pending"),
        EXCHANGE: ("rows", "pack", "cells_per_thread"),
        WALLS: ("flags", "block", "steps"),
        STAGES: ("barrier", "min_blocks", "block"),
        LATENCY: ("march", "min_blocks", "prefetch"),
        AGAIN: ("march", "chunks", "block_order"),
        LAUNCH: ("launch", "steps"),
        MEETING: ("meeting", "block"),
    },
    "cpu": {
        MEMORY: _BYTES,
        ARITHMETIC: ("vector_bits", "compute", "steps"),
        REFILLS: ("padding", "row_padding", "stride", "layout"),
        CACHE: ("tile_y", "tile_z", "steps"),
        SHIFTED: ("row_offset", "far_ends", "reads"),
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
        if acting := tuple(name for name in known if neutral(name, flat) is None):
            return term.name, acting
    return "", ()
