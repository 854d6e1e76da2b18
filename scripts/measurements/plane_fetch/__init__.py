"""Passes of shared memory that fetches of planes take."""
