"""Boundaries as kernels meet them: cut links, words of flags, launch arguments."""
