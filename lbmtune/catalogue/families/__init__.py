"""The kernel families."""
