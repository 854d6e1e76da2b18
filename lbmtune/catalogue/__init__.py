"""The catalogue of all kernels: cases, schemes, layouts, collisions, precisions, configurations and their rules."""
