"""Ways to exchange between the GPUs of one host, measured beside one of them, each proved first."""
