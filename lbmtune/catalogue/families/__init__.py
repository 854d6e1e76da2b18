"""The kernel families: one record each, with its knobs, its geometry and its rules."""
