"""Kill studies at random moments, resume them, and check what is left."""
