"""Micro-benchmarks that describe a machine."""
