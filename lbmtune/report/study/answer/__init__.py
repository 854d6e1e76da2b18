"""The answer of a study: which kernel, how fast beside others, how near its limit, how to use it."""
