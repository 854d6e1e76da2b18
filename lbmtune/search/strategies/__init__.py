"""Strategies: what to compile next, and what to measure next of those compiled."""
