"""Worker processes that may die, and compilation in other processes."""
