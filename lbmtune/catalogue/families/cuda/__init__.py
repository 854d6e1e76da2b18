"""The kernel families of CUDA."""
