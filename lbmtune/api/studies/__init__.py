"""Studies: run one, foresee, follow, compare and read it, and learn from earlier ones."""
