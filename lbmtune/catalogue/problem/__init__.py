"""The problem: what is solved, on which domain, with which geometry and boundaries."""
