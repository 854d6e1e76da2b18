"""Parts of the CUDA text that families share."""
