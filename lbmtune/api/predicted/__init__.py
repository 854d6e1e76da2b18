"""Predict without a device: rankings, variations, plans of memory, parts and scaling."""
