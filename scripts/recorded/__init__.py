"""Scripts that read or rewrite recorded sets."""
