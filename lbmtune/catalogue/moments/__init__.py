"""The moment representation: its basis, its collision and its maps from and to populations."""
