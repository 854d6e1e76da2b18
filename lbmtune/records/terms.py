"""The names of the terms of predictions: one vocabulary for the model, the records and the reports."""

from __future__ import annotations

MEMORY = "memory"
RUNS, SECTORS, IN_PLACE, AHEAD = "runs", "partial sectors", "in place", "words ahead"
LOCAL, SOLID, AGAIN = "local memory", "solid cells", "read again"
THREADS, WAVES = "threads in flight", "waves"
LAUNCH, LATENCY, ISSUE, RINGS = "launch", "latency", "instructions", "rings"
EXCHANGE, STAGES, WALLS, OVERTAKEN = "exchanges", "stages", "walls", "overtaken loads"
MEETING = "meeting"
ARITHMETIC, REFILLS, CACHE = "arithmetic", "refills", "cache"
SHIFTED, PREFETCH, GROUPED = "shifted rows", "prefetch", "groups"
