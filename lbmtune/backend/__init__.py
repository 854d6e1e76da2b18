"""Devices and compilers; only `backend.cuda` imports cupy and only `backend.cpu` imports numba, both lazily."""
