"""How measurements are compared: intervals of repeats, races of finalists."""
