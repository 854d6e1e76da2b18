"""Predictions from bytes and measured bandwidth; the machine description."""
