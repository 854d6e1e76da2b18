"""Files, keys, arguments and spaces of version 0.1, which stay readable by the tables of this package."""
