"""CPU text of the direct family."""
