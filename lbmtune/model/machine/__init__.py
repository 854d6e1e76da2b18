"""Machine descriptions."""
