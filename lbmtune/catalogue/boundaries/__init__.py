"""Boundaries in kernels: cut links, cell flags, conditions at faces, launch arguments."""
