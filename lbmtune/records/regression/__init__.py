"""What became of speeds that were measured before: of the kernels of a study, and of that of a best.json."""
