"""The moment representation: its basis, its collision and its maps to and from populations."""
