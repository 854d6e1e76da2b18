"""CUDA text of face exchange."""
