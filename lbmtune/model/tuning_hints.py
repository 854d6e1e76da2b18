"""Which axes a term depends on most: where somebody would look for what a kernel loses."""

from __future__ import annotations

from collections.abc import Mapping

from lbmtune.catalogue.axes import neutral
from lbmtune.catalogue.config import KernelConfig
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
        cpu.MEMORY: _BYTES,
        cpu.ARITHMETIC: ("vector_bits", "compute", "steps"),
        cpu.REFILLS: ("padding", "row_padding", "stride", "layout"),
        cpu.CACHE: ("tile_y", "tile_z", "steps"),
        cpu.SHIFTED: ("row_offset", "far_ends", "reads"),
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
        if acting := tuple(name for name in known if neutral(name, flat) is None):
            return term.name, acting
    return "", ()
