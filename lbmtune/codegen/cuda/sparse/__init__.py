"""CUDA text of the sparse family."""
