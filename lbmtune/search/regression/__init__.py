"""Regression: configurations as points of a unit cube, and predictions between them."""
