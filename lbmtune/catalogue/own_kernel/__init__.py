"""Kernels of users: their description, their configurations and the rules of these."""
