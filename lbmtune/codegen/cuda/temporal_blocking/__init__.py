"""CUDA text of temporal blocking."""
