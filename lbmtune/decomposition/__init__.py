"""Cut a domain into parts for several devices: parts with their halos, and what crosses the faces between them."""
