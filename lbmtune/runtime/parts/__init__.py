"""A program on the parts of a domain: the exchange through the host as the reference, and that between devices."""
