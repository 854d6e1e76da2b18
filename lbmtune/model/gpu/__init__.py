"""The model of GPU kernels."""
