"""Terms that GPU kernels of several families share."""
