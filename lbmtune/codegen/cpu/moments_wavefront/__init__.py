"""CPU text of the moments wavefront."""
