"""Parts of the CPU text that families share."""
