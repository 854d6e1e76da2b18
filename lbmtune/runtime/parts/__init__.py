"""A program on the parts of a domain, which exchange through the host as the reference, directly, or by processes."""
