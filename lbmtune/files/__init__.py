"""Study files and other TOML input."""
