"""Code generation: a case and a configuration become a Program of text, buffers and launches, without cupy or numba."""
