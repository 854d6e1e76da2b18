"""Choose few kernels that cover many domains: which domains to search and to check, which kernels, which rule."""
