"""CUDA text of the direct family."""
