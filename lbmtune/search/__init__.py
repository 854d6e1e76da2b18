"""The search: the legal set, the choice of the next configuration, the loop of a study."""
