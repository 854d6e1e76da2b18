"""From a case and a configuration to a Program: text, buffers and launches. Imports neither cupy nor numba."""
