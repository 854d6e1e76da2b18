"""Comparison of measurements: intervals of repeats, races of finalists."""
