"""A study as Optuna sees one: its journal, its distributions, and the importance of knobs."""
