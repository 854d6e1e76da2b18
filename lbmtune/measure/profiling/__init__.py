"""Profiles of single kernels."""
