"""Studies that several workers share, on the storages of Optuna."""
