"""Scripts that measure on this machine; what they print is recorded below studies/recorded."""
