"""Devices and compilers. Only `backend.cuda` imports cupy, only `backend.cpu` imports numba, both lazily."""
