"""Changes of speeds since they were measured: of the kernels of a study, and of that of a best.json."""
