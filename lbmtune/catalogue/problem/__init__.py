"""The problem that is solved: flow, domain, geometry and boundaries."""
