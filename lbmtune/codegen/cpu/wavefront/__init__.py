"""CPU text of the wavefront family."""
