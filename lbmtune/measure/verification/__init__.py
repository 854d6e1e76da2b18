"""Proof before timing: the oracle and the comparison with it."""
