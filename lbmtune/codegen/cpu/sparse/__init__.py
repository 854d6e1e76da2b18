"""CPU text of the sparse family."""
