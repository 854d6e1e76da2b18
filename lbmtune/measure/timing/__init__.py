"""The timing protocol."""
