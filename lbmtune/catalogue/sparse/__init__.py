"""Sparse domains: fluid sites, the order they are numbered in, and their index list."""
