"""Names of what the pass that computes density and velocity between two launches takes, on every backend."""

ALONG = "along"
"""Offsets of each value along the axes, of open links and of cut ones."""
PLACES, CELLS, SITES = "places", "cells", "sites"
"""Elements of the values of listed sites, the cells of those, and their number."""
RUNS, VECTORS, OTHERS, SINGLES = "runs", "vectors", "others", "singles"
"""First cells of the vectors of a row and their number; cells of a row that are in none, and their number."""
FORCES = ("force_x", "force_y", "force_z")
