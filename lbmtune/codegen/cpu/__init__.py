"""Numba kernels as Python text, by kernel family. Imports no numba."""
