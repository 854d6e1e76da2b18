"""Temporal blocking on a GPU."""
