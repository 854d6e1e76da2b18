"""One result for many domains: studies of a few, few kernels that cover all, and a check on others."""
