"""The model of CPU kernels."""
