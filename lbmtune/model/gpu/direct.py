"""The terms of the model of one-step kernels on a GPU: seconds that an update takes of the whole device.

Each is a pure function of the case, the configuration, what was compiled and the calibration of a machine. They add up,
because what they stand for goes through the same memory; threads in flight then decide how much of its bandwidth is
used, and the issue of instructions is a bound of its own. Parameters come from micro-benchmarks alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lbmtune.model.gpu.concurrency import in_flight, waves
from lbmtune.model.gpu.copy_terms import in_place, partial, runs, words_ahead
from lbmtune.model.gpu.fixed_costs import first_and_last, launch, rings
from lbmtune.model.gpu.inputs import (
    AHEAD,
    IN_PLACE,
    ISSUE,
    LAUNCH,
    LOCAL,
    RINGS,
    RUNS,
    SECTORS,
    SOLID,
    THREADS,
    WAVES,
    Subject,
)
from lbmtune.model.gpu.solid_cells import solid_cells
from lbmtune.model.gpu.spills import local_memory
from lbmtune.records import Term

SECONDS: Mapping[str, Callable[[Subject], Term]] = {
    RUNS: runs,
    SECTORS: partial,
    SOLID: solid_cells,
    IN_PLACE: in_place,
    AHEAD: words_ahead,
    LOCAL: local_memory,
}
"""Terms that are added to the bytes."""
SHARES: Mapping[str, Callable[[Subject], float]] = {THREADS: in_flight, WAVES: waves}
"""Of the bandwidth that is in use."""
ONCE: Mapping[str, Callable[[Subject], Term]] = {LAUNCH: launch, ISSUE: first_and_last, RINGS: rings}
"""Terms that do not wait for memory."""
