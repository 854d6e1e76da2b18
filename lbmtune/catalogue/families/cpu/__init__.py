"""The kernel families of CPUs."""
