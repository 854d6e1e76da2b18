"""Devices of this host and their machine descriptions: measured ones, shipped ones, and what is wrong with a host."""
