"""Proof and timing: the oracle, verification, the timing protocol, isolation, micro-benchmarks."""
