"""Several devices of this machine: their links, one domain cut over them, and what is measured of that."""
