"""Placement on the processor: threads on cores, memory on NUMA nodes and in pages of a kind."""
