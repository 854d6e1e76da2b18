"""CUDA text of persistent kernels."""
