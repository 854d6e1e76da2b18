"""Trials in worker processes."""
