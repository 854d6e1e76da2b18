"""The names of the terms of predictions: one vocabulary for the model, the records and the reports."""

from __future__ import annotations

MEMORY = "memory"
RUNS, SECTORS, IN_PLACE, INDEX_PREFETCH = "runs", "partial sectors", "in place", "index prefetch"
LOCAL, SOLID, L2_REFETCH = "local memory", "solid cells", "L2 refetch"
THREADS, WAVES = "threads in flight", "waves"
LAUNCH, LATENCY, ISSUE, RINGS = "launch", "latency", "instructions", "rings"
EXCHANGE, STAGES, WALLS, SPILL_HAZARDS = "exchanges", "stages", "walls", "spill hazards"
GRID_SYNC = "grid sync"
ARITHMETIC, REFILLS, CACHE = "arithmetic", "refills", "cache"
SHIFTED, PREFETCH, GROUPED = "shifted rows", "prefetch", "groups"
