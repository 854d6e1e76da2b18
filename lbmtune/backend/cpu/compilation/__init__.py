"""Compile CPU kernels: generated modules by Numba, and C by the compiler of the system."""
